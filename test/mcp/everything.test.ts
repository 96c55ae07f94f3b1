import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { allow, entryOf, npmOverHttp, withMcp } from '../support/mcp.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find } from '../support/tools.ts'

const everything = entryOf('@modelcontextprotocol/server-everything')

/** The server, how it is reached, and how it is killed; `again` starts it anew where nobody else would. */
interface Away {
  mcp: { command: string; args: string[] } | { url: string; timeout: number }
  kill(): Promise<void>
  again(): Promise<void>
}

async function overStdio(): Promise<Away> {
  const directory = await temporaryDirectory()
  onTestFinished(directory.remove)
  const pids = join(directory.path, 'pids')
  const noted = `echo $$ >> "$0"; exec "$@"`
  const args = ['-c', noted, pids, process.execPath, everything, 'stdio']
  return {
    mcp: { command: 'sh', args },
    async kill() {
      for (const pid of readFileSync(pids, 'utf8').trim().split('\n')) kill(Number(pid))
    },
    async again() {},
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {} // it has ended
}

async function overHttp(): Promise<Away> {
  const { url, port, kill } = await npmOverHttp(everything, ['streamableHttp'])
  return {
    mcp: { url, timeout: 4_000 }, // until it is over, it may still be at it
    kill,
    again: async () => void (await npmOverHttp(everything, ['streamableHttp'], port)),
  }
}

test.each([
  ['stdio', overStdio],
  ['http', overHttp],
])(
  "npm's server over %s, killed in the middle of a call: a person is asked, and the next call has a new one",
  async (_, open) => {
    const away = await open()
    const use = (said: string): [string, unknown] =>
      said === 'echo'
        ? ['all__echo', { message: 'hi' }]
        : ['all__trigger-long-running-operation', { duration: 60, steps: 600 }]
    const server = await withMcp({ all: away.mcp }, use, { policy: allow })
    const echo = async () =>
      find(await (await server.start('c', 'echo')).rest(), 'tool_result').tool_output
    expect(await echo()).toBe('Echo: hi')
    const stream = await server.start('c', 'long')
    await stream.until('tool_output')
    await away.kill()
    const ask = find(await stream.until('approval_required'), 'approval_required')
    expect(ask).toMatchObject({
      kind: 'in_doubt',
      tool_name: 'all__trigger-long-running-operation',
      card: { evidence: { error: 'The connection to the MCP server was lost during the call.' } },
    })
    const interaction = stream.response.headers.get('x-interaction-id')!
    const { approval_id } = ask
    await server.approve('c', interaction, { approval_id, outcome: 'skip' })
    const { tool_output } = find(await stream.rest(), 'tool_result')
    expect(tool_output).toMatch(/Whether it happened is not known; it was skipped/)
    await away.again()
    await expect.poll(echo, { timeout: 30_000 }).toBe('Echo: hi')
  },
  60_000,
)
