import { memoryAnalyst } from './agents/account-analysis/memory-analyst.ts'
import { recommendationAuthor } from './agents/account-analysis/recommendation-author.ts'
import { accountAnalysis } from './agents/account-analysis/steps.ts'
import { zohoScout } from './agents/account-analysis/zoho-scout.ts'
import { workflow } from './agents/workflow/agent.ts'
import type { Config } from './config.ts'
import type { AgentSettings, Settings } from './settings.ts'
import { zohoCrm } from './tools/zoho/client.ts'
import { sampleCrm } from './tools/zoho/sample.ts'

/** First messages about accounts of the sample CRM. The ids of a real CRM are not known here. */
const onSamples: Record<string, string> = {
  orchestrator: 'Analyse the account ACC-002',
  zoho_scout: 'Look up ACC-001',
  memory_analyst: 'What was said about ACC-001?',
  recommendation_author: 'What should we do next for ACC-001?',
}

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
  return agents.map((agent) => {
    const suggestion = zoho ? undefined : onSamples[agent.name]
    return { agent, tools: [], ...by, ...(suggestion && { suggestions: [suggestion] }) }
  })
}
