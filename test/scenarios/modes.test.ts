import { chmod, lstat, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fileSpool } from '../../src/lib/spool.ts'
import { chatsClient } from '../support/chats.ts'
import { serve } from '../support/serve.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { find } from '../support/tools.ts'

async function place(): Promise<string> {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  return path
}

/** Everything below a directory, and the directory itself: its kind and mode by its path. */
async function modesIn(path: string, name = '.'): Promise<[string, string][]> {
  const stats = await lstat(join(path, name))
  const mode = (stats.mode & 0o777).toString(8)
  if (!stats.isDirectory()) return [[name, mode]]
  const names = await readdir(join(path, name))
  const below = await Promise.all(names.map((one) => modesIn(path, join(name, one))))
  return [[`${name}/`, mode], ...below.flat()]
}

test.each(['0000', '0022'])(
  'under umask %s, only the user of the server can read what it writes',
  async (umask) => {
    const data = join(await place(), 'data')
    const server = await startServer({
      HANDRAIL_DATA: data,
      HANDRAIL_DEMO_DELAY_MS: '0',
      NODE_OPTIONS: `--import=data:text/javascript,process.umask(0o${umask})`,
    })
    onTestFinished(() => server.kill())
    const client = chatsClient(server.url)
    const stream = await client.start('c', 'Write a file named a/b.txt with the text hello')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const run = stream.response.headers.get('x-interaction-id')!
    await client.approve('c', run, { approval_id, approved: true })
    await stream.rest()
    await (await client.start('gone', 'hello')).rest()
    await client.request('DELETE', '/chats/gone')
    expect((await client.request('GET', '/threads?q=hello')).status).toBeLessThan(500)
    await expect
      .poll(() => readdir(join(data, 'chats/c/interactions')).catch(() => []), { timeout: 10_000 })
      .toEqual([`${run}.json`])
    const running = await modesIn(data)
    await server.stop()
    const modes = [...running, ...(await modesIn(data))]
    const paths = modes.map(([path]) => path)
    for (const path of [
      'audit.key',
      'lock.sock',
      'files/default/local/a/b.txt',
      'chats/c/chat.json',
    ])
      expect(paths).toContain(path)
    const open = modes.filter(([path, mode]) => mode !== (path.endsWith('/') ? '700' : '600'))
    expect(open).toEqual([])
  },
)

test('a spooled outcome can be read by the user of the server alone', async () => {
  const directory = join(await place(), 'spool')
  await fileSpool(directory).save('eff_1', { output: 'secret' })
  expect(await modesIn(directory)).toEqual([
    ['./', '700'],
    ['eff_1.json', '600'],
  ])
})

test('directories that an older version left open to others are closed, and an open data directory is logged', async () => {
  const data = await place()
  for (const name of ['log', 'chats', 'index', 'files', 'erased']) {
    await mkdir(join(data, name))
    await chmod(join(data, name), 0o755)
  }
  await writeFile(join(data, 'files/notes.txt'), 'notes')
  await chmod(data, 0o755)
  const logged: [object, string][] = []
  const warn = (about: object, message: string) => void logged.push([about, message])
  await serve({}, { data, log: { info() {}, warn, error() {} } })
  const modes = Object.fromEntries(await modesIn(data))
  for (const name of [
    'files',
    ...(process.env.HANDRAIL_TEST_STORE ? [] : ['log', 'chats', 'index', 'erased']),
  ])
    expect(modes[`${name}/`]).toBe('700')
  expect(logged).toContainEqual([{ directory: data }, expect.stringContaining('other users')])
})
