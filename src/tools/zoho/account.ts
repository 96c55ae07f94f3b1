import { z } from 'zod'
import { defineTool } from '../../core/tool.ts'
import type { Crm } from './crm.ts'

const where = { zoho: 'Zoho CRM', sample: 'the sample CRM' }

/** Looks an account up. */
export const accountTool = (crm: Crm) =>
  defineTool({
    name: 'crm_account',
    description: `Gives an account with its deals and notes, from ${where[crm.source]}.`,
    schema: z.strictObject({ account_id: z.string().min(1).max(64) }),
    access: 'read',
    idempotent: true,
    describe: ({ account_id }) => `Look up ${account_id} in ${where[crm.source]}`,
    target: ({ account_id }) => account_id,
    run: async ({ account_id }, { signal }) => {
      const account = await crm.account(account_id, signal)
      if (account) return account
      const known = crm.source === 'sample' ? ' It has ACC-001 to ACC-010.' : ''
      throw new Error(`There is no account ${account_id} in ${where[crm.source]}.${known}`)
    },
  })
