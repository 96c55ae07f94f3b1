import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

const serve = fileURLToPath(new URL('../../scripts/serve-page.mjs', import.meta.url))

export interface PageServer {
  url: string
  child: ChildProcess
  close(): Promise<void>
}

/** The built page on a port of its own, in front of a runtime. */
export async function startPage(
  upstream: string,
  env: Record<string, string> = {},
): Promise<PageServer> {
  const port = await freePort()
  const child = spawn(process.execPath, [serve], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: String(port),
      HOSTNAME: '127.0.0.1',
      HANDRAIL_URL: upstream,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  child.stdout?.on('data', (chunk) => (output += chunk))
  child.stderr?.on('data', (chunk) => (output += chunk))
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = `http://127.0.0.1:${port}`
  while (
    !(await fetch(`${url}/icon.svg`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error(`The page ended before it listened:\n${output}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return {
    url,
    child,
    async close() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/**
 * A port that stays free until it is used: below those that the system gives to whoever asks for any, and
 * to every connection that is made in the meantime.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    const probe = createServer()
    const free = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!free) continue
    await new Promise((resolve) => probe.close(resolve))
    return port
  }
}
