import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { type Tab, theatre, visible } from './theatre.ts'

const scene = theatre({
  HANDRAIL_API_KEYS: 'ann-has-this-long-key=ann,bob-has-this-long-key=bob:user+approver',
})
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }
const as = (who: 'ann' | 'bob') => ({ authorization: `Bearer ${who}-has-this-long-key` })

/** Something that waits for a decision, on a chat of its own. */
async function asked(words: string): Promise<string> {
  const chat = randomUUID()
  const response = await fetch(`${scene.stage.url}/chats/${chat}/interactions`, {
    method: 'POST',
    headers: { ...as('ann'), 'content-type': 'application/json' },
    body: JSON.stringify({ user_message: words }),
  })
  onTestFinished(() => response.body?.cancel())
  await expect.poll(async () => (await open(chat)).length, { timeout: 10_000 }).toBeGreaterThan(0)
  return chat
}

async function open(chat: string): Promise<string[]> {
  const response = await fetch(`${scene.stage.url}/approvals?thread=${chat}`, {
    headers: as('ann'),
  })
  const { approvals } = (await response.json()) as { approvals: { id: string }[] }
  return approvals.map(({ id }) => id)
}

/** The inbox of ann or bob. */
async function inbox(who: 'ann' | 'bob', options = {}, path = '/inbox'): Promise<Tab> {
  const tab = await scene.visit().open(options, path)
  tab.expectTrouble() // the browser tells of the answer that asks for a key
  await tab.page.getByLabel('API key').fill(`${who}-has-this-long-key`)
  await tab.button('Sign in').click()
  await visible(tab.page.getByRole('heading', { name: 'Inbox', level: 1 }))
  await tab.live()
  return tab
}

const row = (tab: Tab, text: string | RegExp) =>
  tab.page.locator('.rows > li').filter({ hasText: text })
const press = (tab: Tab, key: string) => tab.page.keyboard.press(key)

test('questions of all chats come as they are asked, and are decided with the keyboard', async () => {
  const tab = await inbox('ann')
  await visible(tab.page.getByRole('heading', { name: 'Nothing waits for you' }))
  await tab.looksRight('inbox-empty')
  const [one, two] = [randomUUID().slice(0, 8), randomUUID().slice(0, 8)]
  await asked(`pay ${one} 1`)
  await visible(row(tab, one))
  await asked(`pay ${two} 2`)
  await visible(row(tab, two))
  await visible(tab.page.getByRole('link', { name: /Inbox 2 open/ }))
  await press(tab, 'j')
  await visible(row(tab, one).locator('.ask-card'))
  await press(tab, 'j')
  await visible(row(tab, two).locator('.ask-card'))
  await tab.looksRight('inbox')
  await press(tab, 'k')
  await visible(row(tab, one).locator('.approve:enabled'))
  await press(tab, 'a')
  await visible(row(tab, one).getByText('It is approved by ann.'))
  await expect.poll(() => scene.stage.guests()).toContain(`${one} 1`)
  await press(tab, 'j')
  await visible(row(tab, two).locator('.edit:enabled'))
  await press(tab, 'e')
  await visible(row(tab, two).getByLabel('amount'))
  await row(tab, two).getByLabel('amount').fill('9')
  await tab.button('Approve with 1 change').click()
  await expect.poll(() => scene.stage.guests()).toContain(`${two} 9`)
})

test('a high risk has to be confirmed, and r rejects with a reason', async () => {
  const disk = randomUUID().slice(0, 8)
  const chat = await asked(`wipe ${disk}`)
  const [id = ''] = await open(chat)
  const tab = await inbox('ann', { colorScheme: 'dark' }, `/inbox?ask=${id}`)
  await visible(row(tab, disk).locator('.approve:enabled'))
  await visible(row(tab, disk).getByText('High risk'))
  await press(tab, 'a')
  await visible(tab.page.getByRole('dialog', { name: /^Wipe/ }))
  expect(await open(chat)).toEqual([id])
  await tab.looksRight('dark-inbox-confirm')
  await tab.button('Not now').click()
  await row(tab, disk).getByRole('link', { name: /^Chat/ }).click()
  const focused = 'document.activeElement?.closest(".ask-card")?.id'
  await expect.poll(() => tab.page.evaluate(focused), { timeout: 20_000 }).toBe(id) // a link to the very question
  await tab.page.goBack()
  await visible(row(tab, disk).locator('.reject:enabled'))
  await press(tab, 'r')
  await tab.page.getByLabel(/^Why\?/).fill('It is the last copy')
  await tab.button('Reject').click()
  await visible(row(tab, disk).getByText('It is rejected by ann.'))

  await tab.button('History').click()
  const past = row(tab, disk)
  await visible(past.getByText('rejected', { exact: true }))
  await visible(past.getByText(/^Audit: /))
  await past.getByRole('button').first().click()
  await visible(past.getByText('“It is the last copy”'))
  await past.getByText('Exact arguments').click()
  await visible(past.getByText(`"disk": "${disk}"`))
  await tab.looksRight('dark-history')
  await past.getByRole('link', { name: 'Look into the run' }).click()
  await visible(tab.page.getByRole('heading', { name: 'Run, step by step' }))
})

test('an approver without the chat sees the question and not the chat, and one decision wins', async () => {
  const guest = randomUUID().slice(0, 8)
  const chat = await asked(`pay ${guest}`)
  const ann = await inbox('ann')
  const bob = await inbox('bob', phone)
  await row(ann, guest).getByRole('button').first().click()
  await row(bob, guest).getByRole('button').first().click()
  await visible(row(bob, guest).getByText('Chat of'))
  await visible(row(bob, guest).locator('.approve:enabled'))
  expect(await row(bob, guest).getByRole('link').count()).toBe(0)
  await bob.looksRight('phone-inbox')
  const wider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
  expect(await bob.page.evaluate(wider)).toBe(false)
  await row(bob, guest).locator('.approve').click()
  await visible(row(ann, guest).getByText('It is approved by bob.'))
  expect(await ann.page.locator('.refused').count()).toBe(0)
  expect(await open(chat)).toEqual([])
})
