import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { chatsClient } from '../support/chats.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'

const config = fileURLToPath(new URL('./steps.config.mjs', import.meta.url))
const timeout = 3_000

test.for([
  ['no', 'COMPLETED', ['first', 'slow', 'last']],
  ['yes', 'FAILED', ['first', 'slow']],
] as const)(
  'a step whose time goes by while the server is dead has timed out, and is not begun again (required: %s)',
  async ([required, status, begun]) => {
    const { path, remove } = await temporaryDirectory()
    onTestFinished(remove)
    const marks = `${path}/begun.txt`
    await writeFile(marks, '')
    const lines = async () => (await readFile(marks, 'utf8')).split('\n').filter(Boolean)
    const env = {
      ...{
        HANDRAIL_CONFIG: config,
        HANDRAIL_DATA: `${path}/data`,
        HANDRAIL_SPOOL: `${path}/spool`,
      },
      ...{ HANDRAIL_LEASE_MS: '300', BEGUN: marks, STEP_REQUIRED: required },
      STEP_TIMEOUT: String(timeout),
    }
    const first = await startServer(env)
    onTestFinished(() => first.kill())
    const stream = await chatsClient(first.url).start('c', 'go')
    await expect.poll(lines).toContain('slow')
    const since = Date.now()
    await first.kill()
    expect(Date.now() - since, 'it died before its time').toBeLessThan(timeout)
    await sleep(timeout)
    const second = await startServer(env)
    onTestFinished(() => second.kill())
    const id = stream.response.headers.get('x-interaction-id')!
    const client = chatsClient(second.url)
    const frames = await (await client.join('c', id)).rest()
    expect(frames.at(-1)!.data.status).toBe(status)
    expect(await lines()).toEqual(begun)
    const session = await client.request('GET', '/copilotkit/status?session_id=c')
    expect(await session.json()).toMatchObject({
      agents: { slow: { status: 'failed', errors: ['slow was not done after 3 s.'] } },
    })
  },
)
