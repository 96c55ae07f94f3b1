import type { Agent } from '../../core/agent.ts'
import { accountTool } from '../../tools/zoho/account.ts'
import type { Account, Crm } from '../../tools/zoho/crm.ts'
import { byTool } from './by-tool.ts'

/** Looks an account up in the CRM. */
export function zohoScout(crm: Crm): Agent {
  const tool = accountTool(crm)
  return {
    name: 'zoho_scout',
    description: 'Looks an account up in the CRM: what it is, its deals and its notes',
    tools: [tool],
    run: (ctx) =>
      byTool<Account>(ctx, {
        tool: tool.name,
        input: (account_id) => ({ account_id }),
        read: (account) => ({ output: account, text: textFor(account) }),
      }),
  }
}

function textFor({ account_id, name, industry, status, deals, notes, source }: Account): string {
  const open = deals.filter(({ stage }) => !stage.startsWith('Closed')).length
  const label = source === 'sample' ? ' (sample data, not from a real CRM)' : ''
  const what = [industry, status].filter(Boolean).join(', ')
  const counts = `${open} open of ${deals.length} deals, ${notes.length} notes`
  return `${account_id}: ${name}${what === '' ? '' : `, ${what}`}; ${counts}${label}.`
}
