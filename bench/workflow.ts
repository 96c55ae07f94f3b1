import { join } from 'node:path'
import { compose, readConfig, workflow } from '../src/index.ts'
import { median, table, us, withDirectory } from './support.ts'

const repeats = 30
const many = 20

/** What a step of a workflow costs: with the demo model at no delay, and with an agent that does nothing. */
export async function workflows(): Promise<void> {
  await withDirectory(async (directory) => {
    const data = join(directory, 'data')
    const env = { PORT: '0', LOG_LEVEL: 'silent', HANDRAIL_DATA: data, HANDRAIL_DRAIN_MS: '0' }
    const quick = { HANDRAIL_DEMO_DELAY_MS: '0', HANDRAIL_SPOOL: join(directory, 'spool') }
    const config = readConfig({ ...env, ...quick })
    const analysis = await compose(config, { workflow: { enableApprovalWorkflow: false } })
    const rows = [await measure('account analysis, demo model', 3, analysis)]
    await analysis.close()
    const nothing = {
      name: 'nothing',
      async *run() {
        yield { type: 'event' as const, name: 'nothing', value: {} }
      },
    }
    const steps = Array.from({ length: many }, (_, n) => ({ agent: nothing, outputKey: `o${n}` }))
    const idle = await compose(config, { agents: [workflow({ name: 'orchestrator', steps })] })
    rows.push(await measure('steps that do nothing: the overhead', many, idle))
    await idle.close()
    table('14. A step of a workflow', [['', 'steps', 'median', 'worst'], ...rows])
  })
}

type Server = Awaited<ReturnType<typeof compose>>

async function measure(name: string, steps: number, server: Server): Promise<string[]> {
  const found: number[] = []
  for (let n = 0; n <= repeats; n++) {
    const body = { account_id: 'ACC-002', session_id: `${steps}-${n}`, user_message: 'Analyse it' }
    const headers = { 'content-type': 'application/json', host: 'localhost' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const since = performance.now()
    const response = await server.fetch(new Request('http://localhost/agent-orchestrator', init))
    const text = await response.text()
    if (!text.includes('"status":"completed"')) throw new Error(text)
    if (n > 0) found.push(((performance.now() - since) * 1_000) / steps)
  }
  return [name, String(steps), us(median(found)), us(Math.max(...found))]
}
