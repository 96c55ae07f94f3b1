import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../support/server.ts'
import { freePort } from './page-server.ts'

const script = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url))

/** `npm start` of a built clone. */
async function start(env: Record<string, string> = {}) {
  const directory = await temporaryDirectory()
  const web = env.WEB_PORT ?? String(await freePort())
  const child = spawn(process.execPath, [script], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      LOG_LEVEL: 'warn',
      HANDRAIL_DATA: `${directory.path}/data`,
      HANDRAIL_SPOOL: `${directory.path}/spool`,
      HANDRAIL_DRAIN_MS: '0',
      WEB_PORT: web,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
    await directory.remove()
  })
  const says = (words: string | RegExp) =>
    expect.poll(() => output, { timeout: 30_000 }).toMatch(words)
  return { child, exited, says, output: () => output, page: `http://127.0.0.1:${web}` }
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const answers = (url: string) =>
  fetch(url).then(
    ({ status }) => status,
    () => 0,
  )

test('starts server and page, says where they are, and stops both', async () => {
  const { child, exited, says, output, page } = await start()
  await says(/Handrail listens on http:\/\/\S+/)
  await says(`The page is at ${page.replace('127.0.0.1', 'localhost')}`)
  expect(await answers(`${page}/api/copilotkit/info`)).toBe(200)
  const server = /listens on (http:\/\/\S+)/.exec(output())![1]!
  const children = childrenOf(child.pid!)
  expect(children).toHaveLength(2)
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
  expect([await answers(page), await answers(server)]).toEqual([0, 0])
  expect(output()).not.toContain('ended')
})

test('a page that dies is said to be dead, and comes back; the server goes on', async () => {
  const { child, says, output, page } = await start()
  await says('The page is at')
  const server = /listens on (http:\/\/\S+)/.exec(output())![1]!
  process.kill(childrenOf(child.pid!).at(-1)!, 'SIGKILL')
  await says("The page's server ended (SIGKILL)")
  expect(await answers(`${server}/healthz`)).toBe(200)
  await expect.poll(() => answers(page), { timeout: 20_000 }).toBe(200)
})

test('a page does not outlive who started it', async () => {
  const { child, says, page } = await start()
  await says('The page is at')
  const [server] = childrenOf(child.pid!)
  child.kill('SIGKILL')
  await expect.poll(() => answers(page), { timeout: 10_000 }).toBe(0)
  process.kill(server!, 'SIGTERM')
  // It writes while it stops: its directory is removed only after that.
  await expect.poll(() => isRunning(server!), { timeout: 20_000 }).toBe(false)
})

test('a port that is taken is one sentence, and nothing is started', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await new Promise((resolve) => other.once('listening', resolve))
  const { port } = other.address() as { port: number }
  const { exited, output } = await start({ WEB_PORT: String(port) })
  expect(await exited).toBe(1)
  expect(output().trim()).toBe(
    `The page's port ${port} is taken by another program: set WEB_PORT to a free one, or HANDRAIL_WEB=off to start without the page.`,
  )
})

test.each<[string, Record<string, string>, RegExp]>([
  ['PORT as WEB_PORT', { PORT: '25901', WEB_PORT: '25901' }, /^PORT and WEB_PORT are both 25901/],
  ['a port in letters', { WEB_PORT: '0xbb8' }, /^WEB_PORT is 0xbb8, which is no port/],
  [
    'no address',
    { HANDRAIL_URL: 'localhost:8000' },
    /^HANDRAIL_URL is localhost:8000, .*like http:/,
  ],
])('%s is one sentence, and nothing is started', async (_, env, sentence) => {
  const { exited, output } = await start(env)
  expect(await exited).toBe(1)
  expect(output()).toMatch(sentence)
  expect(output()).not.toContain('listens')
})

test('another program on its port is not taken for the page', async () => {
  const port = await freePort()
  // Free while it is asked for, and taken by the time the page wants it.
  const env = { WEB_PORT: String(port), HANDRAIL_CONFIG: await slowConfig(port) }
  const { says, output } = await start(env)
  await says("The page's server ended")
  expect(output()).not.toContain('The page is at')
})

/** A configuration that takes a port before the server listens, and answers there as the page would. */
async function slowConfig(port: number): Promise<string> {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const file = join(path, 'handrail.config.mjs')
  await writeFile(
    file,
    `import { createServer } from 'node:http'
    const other = createServer((_, response) => response.end('ok'))
    await new Promise((resolve) => other.listen(${port}, '127.0.0.1', resolve))
    export default {}`,
  )
  return file
}

test('without a page there is none', async () => {
  const { child, says } = await start({ HANDRAIL_WEB: 'off' })
  await says('Handrail listens on')
  expect(childrenOf(child.pid!)).toHaveLength(1)
})
