import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Stop } from './run.mjs'
import { webEnv } from './web.mjs'

const hostOf = ({ WEB_HOST }) => WEB_HOST || '127.0.0.1'

/** The port of the page, if it can be had: asked before anything is begun. */
export async function pagePort(env) {
  const port = /^\d+$/.test(env.WEB_PORT || '3000') ? Number(env.WEB_PORT || 3000) : 0
  if (port < 1 || port > 65_535)
    throw new Stop(
      `WEB_PORT is ${env.WEB_PORT}, which is no port: set it to a number such as 3000.`,
    )
  if (Number(env.PORT || 8000) === port)
    throw new Stop(
      `PORT and WEB_PORT are both ${port}, and the page needs a port of its own: set WEB_PORT to another one, or HANDRAIL_WEB=off to start without the page.`,
    )
  if (env.HANDRAIL_URL && !/^https?:\/\/[^/]/.test(env.HANDRAIL_URL))
    throw new Stop(
      `HANDRAIL_URL is ${env.HANDRAIL_URL}, which is no address: write it like http://localhost:8000.`,
    )
  const probe = createServer()
  await new Promise((resolve, reject) => {
    probe.once('error', ({ code }) => {
      const why = code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be had (${code})`
      reject(
        new Stop(
          `The page's port ${port} ${why}: set WEB_PORT to a free one, or HANDRAIL_WEB=off to start without the page.`,
        ),
      )
    })
    probe.listen(port, hostOf(env), () => probe.close(resolve))
  })
  return port
}

/** Runs the page's server beside ours. If it dies it is said, and it is started again: chats go on
 *  without it, and nobody should have to notice by themselves. */
export function startPage({ url, port, env }) {
  const host = hostOf(env)
  let stopping = false
  let child
  let timer
  let deaths = 0
  const leave = () => {
    stopping = true
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, leave)
  const start = () => {
    let printed = ''
    const settings = { PORT: String(port), HOSTNAME: host, HANDRAIL_URL: env.HANDRAIL_URL || url }
    child = spawn(process.execPath, [fileURLToPath(new URL('serve-page.mjs', import.meta.url))], {
      env: { ...env, ...webEnv, ...settings, NODE_ENV: 'production' },
      // By the last of these it notices when we are gone, whatever ended us.
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const mine = child
    const born = Date.now()
    const read = (chunk) => {
      printed = (printed + chunk).slice(-4_000)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('exit', (code, signal) => {
      child = undefined
      if (stopping) return
      if (Date.now() - born > 60_000) deaths = 0
      const wait = Math.min(30, 2 ** deaths++)
      process.stderr.write(printed)
      console.error(
        `The page's server ended (${signal ?? code}); chats go on without it. It is started again in ${wait} s.`,
      )
      timer = setTimeout(start, wait * 1_000)
    })
    // Told by itself, since another program may answer on that port.
    child.once('message', () => void tell(mine))
  }
  const shown = host === '127.0.0.1' || host === '0.0.0.0' || host === '::' ? 'localhost' : host
  const tell = async (mine) => {
    const at = `http://${host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host}:${port}`
    while (child === mine && !stopping) {
      const answers = await fetch(`${at}/icon.svg`).then(
        ({ ok }) => ok,
        () => false,
      )
      if (answers) return console.log(`The page is at http://${shown}:${port}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  start()
  return {
    async stop() {
      stopping = true
      clearTimeout(timer)
      if (!child) return
      const gone = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      const mine = child
      const late = setTimeout(() => mine.kill('SIGKILL'), 2_000) // open streams would hold it
      await gone
      clearTimeout(late)
    },
  }
}
