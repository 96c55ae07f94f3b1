import { execFile } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/server.ts'
import { root } from './dockerfile.ts'

const dist = pathToFileURL(`${root}/dist/`)

/** What V8 says of its plans in the first seconds of a server, when it is asked to hurry. */
async function plansOf(script: string): Promise<string> {
  const data = await temporaryDirectory()
  const flags = ['--gc-memory-reducer-start-delay-ms=300', '--trace-gc-verbose']
  const args = [...flags, '--input-type=module', '-e', script]
  const env = { PATH: process.env.PATH, PORT: '0', HANDRAIL_DATA: data.path }
  const run = promisify(execFile)(process.execPath, args, { env, timeout: 6_000 })
  const { stdout } = await run.catch((error: { stdout: string }) => error)
  await data.remove()
  expect(stdout).toMatch(/listens on/)
  return stdout
}

// Other versions say it in other words.
test.runIf(process.versions.node.startsWith('20.'))(
  'a quiet server keeps what V8 has learnt of its code',
  async () => {
    const [server, control] = await Promise.all([
      plansOf(`import '${new URL('main.js', dist)}'`),
      plansOf(`const { cli } = await import('${new URL('cli.js', dist)}'); await cli([])`),
    ])
    expect(control).toMatch(/Memory reducer/)
    expect(server).not.toMatch(/Memory reducer/)
  },
)
