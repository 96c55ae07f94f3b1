import { memoryAnalyst } from './agents/account-analysis/memory-analyst.ts'
import { recommendationAuthor } from './agents/account-analysis/recommendation-author.ts'
import { accountAnalysis } from './agents/account-analysis/steps.ts'
import { zohoScout } from './agents/account-analysis/zoho-scout.ts'
import { workflow } from './agents/workflow/agent.ts'
import type { Config } from './config.ts'
import type { AgentSettings, Settings } from './settings.ts'
import { zohoCrm } from './tools/zoho/client.ts'
import { sampleCrm } from './tools/zoho/sample.ts'

/** The agents of the account analysis, each of which can also be run alone. They have no tools but their own. */
export function accountAgents(
  { zoho }: Pick<Config, 'zoho'>,
  { workflow: options = {} }: Settings,
  now: () => number,
): AgentSettings[] {
  const { model, apiKey, sessionTtl: _, ...rest } = options
  const crm = zoho ? zohoCrm(zoho, now) : sampleCrm()
  const agents = [
    workflow(accountAnalysis(rest)),
    zohoScout(crm),
    memoryAnalyst(),
    recommendationAuthor(),
  ]
  const by = { ...(model !== undefined && { model }), ...(apiKey !== undefined && { apiKey }) }
  return agents.map((agent) => ({ agent, tools: [], ...by }))
}
