import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { type Tab, theatre, visible } from './theatre.ts'

const scene = theatre({
  HANDRAIL_API_KEYS: 'ann-has-this-long-key=ann,bob-has-this-long-key=bob:user+approver',
})
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }
type Who = 'ann' | 'bob'
const as = (who: Who) => ({ authorization: `Bearer ${who}-has-this-long-key` })

const send = (method: string, path: string, body: object) =>
  fetch(scene.stage.url + path, {
    method,
    headers: { ...as('ann'), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** Something of ann's that waits for a decision, on a chat of its own. */
async function asked(words: string, chat: string = randomUUID(), who: Who = 'ann') {
  const response = await send('POST', `/chats/${chat}/interactions`, { user_message: words })
  onTestFinished(() => response.body?.cancel())
  const count = async () => (await open(chat, who)).length
  await expect.poll(count, { timeout: 10_000 }).toBeGreaterThan(0)
  return chat
}

/** What may be decided: of a chat by its owner, of all chats by others. */
async function open(chat: string, who: Who = 'ann'): Promise<string[]> {
  const query = who === 'ann' ? `?thread=${chat}` : ''
  const response = await fetch(`${scene.stage.url}/approvals${query}`, { headers: as(who) })
  const { approvals } = (await response.json()) as { approvals: { id: string }[] }
  return approvals.map(({ id }) => id)
}

/** The inbox of ann or bob. */
async function inbox(who: Who, options = {}, path = '/inbox'): Promise<Tab> {
  const tab = await signedIn(who, options, path)
  await visible(tab.page.getByRole('heading', { name: 'Inbox', level: 1 }))
  await tab.live()
  return tab
}

async function signedIn(who: Who, options: object, path: string): Promise<Tab> {
  const tab = await scene.visit().open(options, path)
  await tab.page.getByLabel('API key').fill(`${who}-has-this-long-key`)
  await tab.button('Sign in').click()
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
  await tab.button('History').click()
  const past = row(tab, two)
  await visible(past.getByText(/^Pay 9 to/))
  await visible(past.locator('.row').getByText('edited', { exact: true }))
  await past.getByRole('button').first().click()
  await visible(past.locator('.past').getByText('edited', { exact: true }))
  await past.getByText('Exact arguments').first().click()
  await visible(past.getByText('"amount": 9'))
  expect(await past.getByText(/^Pay 2 to/).isVisible()).toBe(false)
  await past.getByText('Original request').click()
  await visible(past.getByText(/^Pay 2 to/))
  await past.getByText('Exact arguments').last().click()
  await visible(past.getByText('"amount": 2'))
  await tab.looksRight('history-edited')
})

test('a decided row keeps its place, and j goes on below it, so that a approves no row that was skipped', async () => {
  const tab = await inbox('ann')
  const [first, second, third] = ['one', 'two', 'three'].map(
    (name) => `${name}-${randomUUID().slice(0, 8)}`,
  )
  for (const name of [first, second, third]) {
    await asked(`pay ${name} 1`)
    await visible(row(tab, name!))
  }
  const order = async () => {
    const titles = await tab.page.locator('.rows > li .row .title').allTextContents()
    return titles.map((title) => /(one|two|three)-/.exec(title)?.[1])
  }
  await row(tab, second!).getByRole('button').first().click()
  await visible(row(tab, second!).locator('.approve:enabled'))
  await press(tab, 'a')
  await visible(row(tab, second!).getByText('It is approved by ann.'))
  expect(await order()).toEqual(['one', 'two', 'three'])
  await press(tab, 'j')
  await visible(row(tab, third!).locator('.approve:enabled'))
  expect(await tab.page.locator('.ask-card').count()).toBe(1)
  await press(tab, 'a')
  await visible(row(tab, third!).getByText('It is approved by ann.'))
  await expect.poll(() => scene.stage.guests()).toContain(`${third} 1`)
  expect(scene.stage.guests().join()).not.toContain(first)
  await press(tab, 'k')
  await visible(row(tab, first!).locator('.reject:enabled'))
  await press(tab, 'r')
  await tab.button('Reject').click()
  await visible(row(tab, first!).getByText('It is rejected by ann.'))
})

test('a link to a settled request shows the request and its decision, in the inbox and in its chat', async () => {
  const guest = randomUUID().slice(0, 8)
  const chat = await asked(`pay ${guest} 4`)
  const [id = ''] = await open(chat)
  await send('POST', `/approvals/${id}`, { approved: false, reason: 'Not this month' })
  const tab = await inbox('ann', {}, `/inbox?ask=${id}`)
  const past = row(tab, guest)
  await visible(past.getByText('It is rejected by ann.'))
  await visible(past.getByText('“Not this month”'))
  await visible(past.getByText('Exact arguments'))
  await tab.looksRight('inbox-settled-link')
  await past.getByRole('link', { name: /^Chat/ }).click()
  const focused = 'document.activeElement?.closest(".settled")?.dataset.ask'
  await expect.poll(() => tab.page.evaluate(focused), { timeout: 20_000 }).toBe(id)
  const none = await inbox('ann', {}, '/inbox?ask=ask_nobody')
  none.expectTrouble() // the browser reports the 404
  await visible(none.page.getByText('There is no such request, or it is not for you.'))
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

test('a high-risk call in doubt has to be confirmed in the inbox too, and no key decides it', async () => {
  const chat = await asked('carry dynamite')
  const [id = ''] = await open(chat)
  const tab = await inbox('ann', {}, `/inbox?ask=${id}`)
  const again = tab.button('It did not: do it now')
  await again.click({ trial: true })
  for (const key of ['a', 'e', 'r']) await press(tab, key)
  expect(await tab.page.getByRole('dialog').count()).toBe(0)
  await again.click()
  await visible(tab.page.getByRole('dialog', { name: /^Carry/ }))
  for (const key of ['a', 'j']) await press(tab, key)
  await tab.button('Not now').click()
  expect(await open(chat)).toEqual([id])
  await again.click()
  await tab.button('Do it now').click()
  await expect.poll(() => open(chat)).not.toContain(id)
})

test('a page of the history that does not come is said not to, and what was read stays', async () => {
  const tab = await inbox('ann')
  const one = {
    id: 'q',
    kind: 'approval',
    state: 'approved',
    title: 'Paid',
    tool: null,
    agent: 'a',
  }
  const at = '2026-01-01T00:00:00.000Z'
  const times = { raised_at: at, deadline: at, decided_at: at, decided_by: 'ann', owner: 'ann' }
  const first = { approvals: [{ ...one, ...times }], next_cursor: 'more' }
  await tab.page.route('**/approvals?state=settled*', (route) =>
    route.request().url().includes('cursor') ? route.abort() : route.fulfill({ json: first }),
  )
  await tab.button('History').click()
  await tab.button('Show more').click()
  await visible(tab.page.locator('.refused').getByText('The server could not be reached.'))
  await visible(row(tab, 'Paid'))
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

test('a budget that is used up is asked about in the inbox too, and answered there', async () => {
  scene.stage.open('always')
  const chat = randomUUID()
  await send('POST', '/chats', { id: chat })
  await send('PUT', `/threads/${chat}/governor`, { isHitlEnabled: true, actionLimit: 1 })
  const tab = await inbox('ann')
  await asked('steps 2', chat)
  const budget = row(tab, 'Budget').filter({ hasText: /model call/ })
  await budget.getByRole('button').first().click()
  await visible(budget.getByText(/One call of demo by assistant/))
  await tab.looksRight('inbox-budget')
  await budget.getByLabel('Another number of calls').fill('9')
  await budget.getByRole('button', { name: 'Continue', exact: true }).click()
  await visible(tab.page.getByText('It is answered by ann.'))
  const status = async () => {
    const response = await fetch(`${scene.stage.url}/chats/${chat}`, { headers: as('ann') })
    return ((await response.json()) as { interactions: { status: string }[] }).interactions
  }
  await expect.poll(status, { timeout: 20_000 }).toMatchObject([{ status: 'COMPLETED' }])
})

test('who owns the chat but may not decide sees that, and sees it decided by who may', async () => {
  const door = randomUUID().slice(0, 8)
  const chat = await asked(`vault ${door}`, randomUUID(), 'bob')
  const ann = await signedIn('ann', {}, `/t/${chat}`)
  await ann.live()
  await visible(ann.page.getByText('This is for others to decide: approver.'))
  expect(await ann.page.locator('.ask-card .approve').count()).toBe(0)
  await ann.looksRight('card-for-others')
  const bob = await inbox('bob')
  await row(bob, door).getByRole('button').first().click()
  await row(bob, door).locator('.approve:enabled').click()
  await visible(ann.page.locator('.settled').getByText(/Approved by bob/))
  await ann.ends(`${door} is open`)
})
