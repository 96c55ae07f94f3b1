import { expect, test } from 'vitest'
import { serve } from '../../support/serve.ts'
import { openPage, succeeded } from './support.ts'

test.for([true, false])(
  'the account analysis on the old client, approved: %s',
  async (approved) => {
    const server = await serve()
    const page = openPage(server.url, { agent: 'orchestrator' })
    succeeded(await page.say('Analyse ACC-002'))
    expect(page.interrupt).toBeDefined()
    succeeded(await page.resolve({ approved }))
    expect(page.interrupt).toBeUndefined()
    expect(page.errors).toEqual([])
    const shown = page.shown().join('\n')
    expect(shown).toContain('Harbour Foods')
    expect(shown).toContain(`Approval: ${approved ? 'approved' : 'rejected'}.`)
    const fresh = openPage(server.url, { agent: 'orchestrator' })
    expect(await fresh.load()).toMatchObject({
      exists: true,
      state: { status: 'completed', approval: { status: approved ? 'approved' : 'rejected' } },
    })
  },
)
