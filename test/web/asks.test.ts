import { expect, test } from 'vitest'
import type { Locator } from '../browser/browser.ts'
import { type Tab, theatre, visible } from './theatre.ts'

const scene = theatre()
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }

const card = (tab: Tab) => tab.page.locator('.ask-card')
const settled = (tab: Tab) => tab.page.locator('.settled')

interface Listed {
  approvals: { id: string; chat_id: string }[]
}

/** What waits on a thread, for somebody else to decide. */
async function open(thread: string): Promise<string[]> {
  const response = await fetch(`${scene.stage.url}/approvals?thread=${thread}`)
  return ((await response.json()) as Listed).approvals.map(({ id }) => id)
}

const decide = async (id: string | undefined, body: object) =>
  await fetch(`${scene.stage.url}/approvals/${id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

test('a card says what will happen and why one might not want it, and is approved by its name', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread} 7`)
  await tab.hears(/Needs your decision: Pay 7/)
  const one = card(tab)
  await visible(one.getByRole('heading', { name: /^Pay 7 to/ }))
  await visible(one.getByText(`account of ${thread}`))
  await visible(one.getByText('Medium risk'))
  await visible(one.locator('.line[data-side="+"]').getByText('+93'))
  await visible(one.getByText('What the model says about it (not checked)'))
  await visible(one.getByText('I think that this is right.'))
  await visible(one.getByText(/min left, then it is rejected\.|\d+ min \d+ s left, then/))
  expect(await one.getByText('As JSON, all of it').isVisible()).toBe(false)
  await one.getByText('Exact arguments').click()
  await visible(one.getByText('"amount": 7'))
  await tab.looksRight('card')
  const [id] = await open(thread)
  const { card: shown } = (await (await fetch(`${scene.stage.url}/approvals/${id}`)).json()) as {
    card: { digest: string }
  }
  const sent = tab.page.waitForRequest((one) => one.method() === 'POST' && one.url().includes(id!))
  await tab.button(/^Pay 7 to/).click()
  // What is decided on is what was shown.
  expect((await sent).postDataJSON()).toEqual({ approved: true, digest: shown.digest })
  await visible(settled(tab).getByText(/Approved by local/))
  await visible(tab.page.locator('.tool-call').getByText('done'))
  await tab.idle()
  await tab.looksRight('card-approved')
  expect(scene.stage.guests()).toContain(`${thread} 7`)
  await tab.reload()
  await visible(settled(tab).getByText(/Approved by local/))
})

test('nothing is approved by a key that was pressed as the card appeared', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread}`)
  const approve = card(tab).locator('.approve')
  await approve.waitFor()
  const asItAppears = await tab.page.evaluate(
    `[document.querySelector('.ask-card .approve')?.disabled, !!document.activeElement?.closest('.ask-card')]`,
  )
  expect(asItAppears).toEqual([true, false])
  for (const key of ['Enter', 'Space', 'y', 'a']) await tab.page.keyboard.press(key)
  expect(await open(thread)).toHaveLength(1)
  await tab.button('Stop here').click()
  await visible(tab.page.getByText('Stopped. What was said is kept.'))
  expect(scene.stage.guests().join()).not.toContain(thread)
})

test('the focus stays with who decides, Escape leads back, and what was written is kept', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`share a-${thread} b\u202e-${thread}`)
  await visible(tab.page.getByText('0 of 2 decided'))
  const focused = () => tab.page.evaluate('document.activeElement?.textContent')
  const [first, second] = [card(tab).first(), card(tab).last()]
  await first.locator('.reject:enabled').click()
  await first.getByLabel(/^Why\?/).fill('Too much')
  await tab.page.keyboard.press('Escape')
  expect(await focused()).toMatch(/^Pay 5 to .a-/)
  await first.locator('.reject').click()
  expect(await first.getByLabel(/^Why\?/).inputValue()).toBe('Too much')
  await tab.button('Reject').first().click()
  await visible(tab.page.getByText('1 of 2 decided'))
  await expect.poll(focused).toMatch(/^Pay 5 to .b/) // the next question
  await card(tab).getByRole('button', { name: 'Change and approve' }).click()
  await visible(second.getByText(/characters that cannot be seen .*: U\+202E\./))
  await tab.looksRight('card-hidden')
  await tab.button('Back').click()
  await card(tab).locator('.approve:enabled').press('Enter')
  await tab.button('Approve it').click() // what cannot be seen makes it a high risk
  await expect.poll(focused).toMatch(/^Approved by local/) // how it ended
})

test('arguments are changed in a form: what is wrong is said and not sent, what is changed is marked', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread} 7`)
  await tab.button('Change and approve').click()
  const amount = card(tab).getByLabel('amount')
  await amount.fill('5000')
  await visible(card(tab).getByText('At most 1000.'))
  expect(await tab.button(/^Approve/).isDisabled()).toBe(true)
  await tab.looksRight('card-invalid')
  await amount.fill('3')
  await card(tab).getByLabel('note').fill('less')
  await expect.poll(() => card(tab).getByText('changed', { exact: true }).count()).toBe(2)
  await tab.looksRight('card-edit')
  await tab.button('Approve with 2 changes').click()
  await visible(settled(tab).getByText(/Approved with changes by local/))
  await tab.idle()
  expect(scene.stage.guests()).toContain(`${thread} 3 less`)
})

test('an edited call shows the arguments that ran, and the original ones on demand', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread} 7`)
  await tab.button('Change and approve').click()
  await card(tab).getByLabel('amount').fill('3')
  await tab.button('Approve with 1 change').click()
  await visible(settled(tab).getByText(/Approved with changes by local/))
  await tab.idle()
  const look = async () => {
    const call = tab.page.locator('.tool-call')
    await visible(call.getByText('edited', { exact: true }))
    await call.locator('summary').click()
    await visible(call.getByText('"amount": 3'))
    expect(await call.getByText('"amount": 7').count()).toBe(0)
    const original = settled(tab).getByText('"amount": 7')
    expect(await original.isVisible()).toBe(false)
    await settled(tab).getByText('Original arguments').click()
    await visible(original)
  }
  await look()
  await tab.looksRight('card-edited')
  await tab.reload()
  await look()
})

test('a permission chosen before the edit form stays visible in it', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread} 7`)
  await card(tab).getByLabel('Allow for').selectOption('this chat')
  await tab.button('Change and approve').click()
  const allow = card(tab).getByLabel('Allow for')
  expect(await allow.inputValue()).toBe('chat')
  await visible(card(tab).getByText(/Every call of pay .* whatever its arguments/))
  await tab.looksRight('card-edit-allow')
  await allow.selectOption('once')
  await card(tab).getByLabel('amount').fill('3')
  const sent = tab.page.waitForRequest(
    (one) => one.method() === 'POST' && one.url().includes('/approvals/'),
  )
  await tab.button('Approve with 1 change').click()
  expect((await sent).postDataJSON()).not.toHaveProperty('remember')
  await tab.idle()
})

/** Presses at nine places of a button, each twice, after the time in which a dialog takes no press. */
async function pressTwice(tab: Tab, button: Locator, dialog: Locator): Promise<void> {
  await button.click({ trial: true }) // waits until it is enabled and the page has scrolled to its end
  const { x, y, width, height } = (await button.boundingBox())!
  for (let n = 0; n < 9; n++) {
    const at = [x + (width * (n + 0.5)) / 9, y + height / 2] as const
    if (n > 0) await tab.button('Not now').click()
    await tab.page.mouse.click(...at)
    await visible(dialog.locator('.danger:enabled'))
    await tab.page.mouse.click(...at)
    await visible(dialog)
  }
}

test('a high risk is approved in the chat only by a second, different gesture', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`wipe ${thread}`)
  const approve = card(tab).locator('.approve:enabled')
  await approve.press('Enter')
  const dialog = tab.page.getByRole('dialog', { name: /^Wipe/ })
  await visible(dialog)
  await tab.looksRight('chat-confirm')
  await tab.page.keyboard.press('Enter') // the same key again confirms nothing
  await expect.poll(() => dialog.count()).toBe(0)
  expect(await open(thread)).toHaveLength(1)
  await approve.dblclick()
  await visible(dialog)
  expect(await open(thread)).toHaveLength(1)
  await tab.button('Not now').click()
  await pressTwice(tab, approve, dialog)
  expect(await open(thread)).toHaveLength(1)
  await tab.button('Not now').click()
  await tab.button('Change and approve').click()
  await pressTwice(tab, tab.button('Approve as it is'), dialog)
  expect(await open(thread)).toHaveLength(1)
  await tab.button('Not now').click()
  await tab.button('Approve as it is').click()
  await visible(dialog)
  expect(await open(thread)).toHaveLength(1)
  await dialog.getByRole('button', { name: 'Approve it' }).click()
  await visible(settled(tab).getByText(/Approved by local/))
  await tab.ends(`${thread} is empty`)
})

test('rejected with a reason, and answered in its place: the model hears the words', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread}`)
  await tab.button('Reject').click()
  await tab.page.getByLabel(/^Why\?/).fill('Not today')
  await tab.looksRight('card-reject')
  await tab.button('Reject').click()
  await visible(settled(tab).getByText(/Rejected by local/))
  await visible(settled(tab).getByText('“Not today”'))
  await tab.ends('Not today')
  await tab.idle()
  await tab.say(`pay ${thread}`)
  await tab.button('Answer instead').click()
  await tab.page.getByLabel('What the model is told').fill('It is paid by card')
  await tab.button('Send this answer instead').click()
  await visible(settled(tab).getByText(/Answered in its place by local/))
  await tab.ends('It is paid by card')
  await visible(tab.page.locator('.tool-call').last().getByText('not called, answered instead'))
  await tab.idle()
  expect(scene.stage.guests().join()).not.toContain(thread)
})

test('several cards: decisions are kept, here and elsewhere, live and after a reload', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`share a-${thread} b-${thread} c-${thread}`)
  const progress = tab.page.getByText('0 of 3 decided')
  await visible(progress)
  const top = async () => (await progress.boundingBox())?.y ?? -1
  await expect.poll(top).toBeGreaterThan(0) // what does not fit is shown from its beginning
  await tab.button(/^Pay 5 to .a-/).click()
  await visible(tab.page.getByText('1 of 3 decided'))
  await visible(tab.page.getByText('decided, waits for the others'))
  await tab.reload()
  await visible(tab.page.getByText('1 of 3 decided'))
  await visible(tab.button('Reject').last())
  await tab.looksRight('cards')
  await tab.button('Reject').first().click() // open in a form while another decides
  const ids = await open(thread)
  await decide(ids[0], { approved: true })
  await decide(ids[1], { approved: false, reason: 'Enough' })
  await tab.idle()
  await expect.poll(() => settled(tab).count()).toBe(3)
  await visible(settled(tab).getByText('“Enough”'))
  expect(await tab.page.locator('.refused').count()).toBe(0)
})

test('what is being filled in stays while another card is decided, and nothing is cleared', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`share a-${thread} b-${thread}`)
  const [first, second] = [card(tab).first(), card(tab).last()]
  await visible(tab.page.getByText('0 of 2 decided'))
  await second.getByRole('button', { name: 'Change and approve' }).click()
  await second.getByLabel('amount').fill('9')
  await tab.page.evaluate(`
    window.cleared = 0
    const look = () => {
      if (document.querySelector('.chat .skeleton')) window.cleared++
      requestAnimationFrame(look)
    }
    look()
  `)
  await first.locator('.approve:enabled').click()
  await visible(tab.page.getByText('1 of 2 decided'))
  expect(await card(tab).getByLabel('amount').inputValue()).toBe('9')
  expect(await tab.page.evaluate('window.cleared')).toBe(0)
  await tab.button('Approve with 1 change').click()
  await tab.ends(`9 sent to b-${thread}`)
})

test('text typed into a card stays when the stream of the run ends', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  let release = () => {}
  const filled = new Promise<void>((resolve) => {
    release = resolve
  })
  let reads = 0
  await tab.page.route('**/outline', async (route) => {
    const read = ++reads
    if (read === 1) await expect.poll(() => open(thread)).toHaveLength(1) // read during the stream
    if (read === 2) await filled // read after the stream
    await route.continue()
  })
  await tab.say(`pay ${thread} 5`)
  await card(tab).getByRole('button', { name: 'Change and approve' }).click()
  await card(tab).getByLabel('amount').fill('9')
  expect(reads).toBe(2)
  const watched = tab.page.waitForRequest('**/watch')
  release()
  await watched
  await tab.button('Approve with 1 change').click({ timeout: 5_000 })
  await tab.ends(`9 sent to ${thread}`)
})

test('a card counts down, and says that nobody decided in time', async () => {
  const { open: visit } = scene.visit()
  const tab = await visit()
  await tab.say('hurry')
  const left = card(tab).getByText(/^\d s left, then it is rejected\.$/)
  await visible(left)
  const first = await left.textContent()
  await expect.poll(() => left.textContent(), { interval: 100 }).not.toBe(first)
  await tab.screenshot('card-countdown')
  await visible(settled(tab).getByText('Expired: nobody decided in time'))
  await tab.idle()
})

test('allowed for the chat: the scope is spelled out, nothing more is asked, and it can be taken back', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread} 1`)
  await card(tab).getByLabel('Allow for').selectOption('this chat')
  await visible(card(tab).getByText(/Every call of pay .* whatever its arguments/))
  await tab.looksRight('card-allow')
  await tab.button(/^Pay 1 to/).click()
  await visible(settled(tab).getByText(/and what follows, for this chat/))
  await tab.idle()
  await tab.say(`pay ${thread} 2`)
  await expect.poll(scene.stage.guests).toContain(`${thread} 2`)
  await tab.idle()
  const marked = tab.page.locator('.tool-call').filter({ hasText: 'allowed earlier' })
  await visible(marked)
  expect(await marked.count()).toBe(1)
  await tab.looksRight('call-granted')
  await tab.reload()
  await visible(marked)
  await tab.button('1 permission').click()
  const allowed = tab.page.getByRole('region', { name: 'Allowed without asking' })
  await visible(allowed.getByText('pay', { exact: true }))
  await tab.looksRight('grants')
  await tab.button('Take back pay').click()
  await visible(tab.page.getByText('Nothing is allowed without asking.'))
  await tab.page.keyboard.press('Escape')
  await tab.say(`pay ${thread} 3`)
  await visible(tab.button(/^Pay 3 to/))
})

test('what was allowed is listed on every branch of the chat, for it holds on all of them', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread} 1`)
  await card(tab).getByLabel('Allow for').selectOption('this chat')
  await tab.button(/^Pay 1 to/).click()
  await visible(tab.page.locator('.tool-call').getByText('done'))
  await tab.idle()
  await tab.page.locator('.bubble').hover()
  await tab.button('Edit your message').click()
  const box = tab.page.getByRole('textbox', { name: 'Your message, to be changed' })
  await box.fill(`pay ${thread} 2`)
  await box.press('Enter')
  await tab.ends(`2 sent to ${thread}`) // without asking
  await tab.idle()
  await visible(tab.button('1 permission'))
  await tab.reload()
  await tab.button('1 permission').click()
  await visible(tab.button('Take back pay'))
})

test('a card that could not be read is read again, and is not said to be for others', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  tab.expectTrouble()
  const away = { status: 502, json: { error: 'away', details: 'The server is away.' } }
  await tab.page.route('**/approvals/*', (route) =>
    route.request().url().includes('stream') ? route.fallback() : route.fulfill(away),
  )
  await tab.say(`vault ${thread}`)
  await visible(card(tab).getByText('What is asked could not be read. Trying again…'))
  expect(
    await card(tab)
      .getByText(/for others to decide/)
      .count(),
  ).toBe(0)
  await tab.page.unroute('**/approvals/*')
  await visible(card(tab).getByText('This is for others to decide: approver.'))
})

test('an effect in doubt: what may be said of it, and the tool may look itself', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say('carry glass')
  await visible(tab.page.getByText(/It is not known whether this was done/))
  await tab.looksRight('card-doubt')
  await tab.button('It did not: do it now').click()
  await visible(settled(tab).getByText(/It had not happened and is done, said local/))
  await tab.button('It happened').click()
  await tab.page.getByLabel(/What came of it/).fill('Carried by hand')
  await tab.button('It happened').click()
  await tab.ends('Carried by hand')
  await tab.idle()
  await tab.say(`carry ${thread}`)
  await visible(tab.button('Skip it'))
  scene.stage.open(thread)
  await tab.button('Let the tool look').click()
  await visible(settled(tab).getByText(/Left to the tool to find out, said local/))
  await tab.ends('carried after all')
  await tab.idle()
})

test('a high-risk call in doubt runs again only after a second, different gesture', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say('carry dynamite')
  await visible(card(tab).getByText('High risk'))
  const [id] = await open(thread)
  const again = tab.button('It did not: do it now')
  const dialog = tab.page.getByRole('dialog', { name: /^Carry/ })
  await again.click({ trial: true }) // waits until it is enabled
  await again.press('Enter')
  await visible(dialog)
  await tab.looksRight('doubt-confirm')
  await tab.page.keyboard.press('Enter') // the same key again confirms nothing
  await expect.poll(() => dialog.count()).toBe(0)
  await pressTwice(tab, again, dialog)
  expect(await open(thread)).toEqual([id])
  await dialog.getByRole('button', { name: 'Do it now' }).click()
  await visible(settled(tab).getByText(/It had not happened and is done, said local/))
  await tab.button('Stop here').click()
  await visible(tab.page.getByText('Stopped. What was said is kept.'))
})

test('a question is answered in a form made from its schema', async () => {
  const { open: visit } = scene.visit()
  const tab = await visit()
  await tab.say('who')
  await visible(card(tab).getByRole('heading', { name: /Who travels\?/ }))
  await tab.button('Send the answer').click()
  await expect.poll(() => card(tab).getByText('This is needed.').count()).toBe(2)
  await tab.looksRight('card-input')
  await card(tab).getByLabel('name').fill('Ann')
  await card(tab).getByLabel('seats').fill('2')
  await card(tab).getByLabel('class').selectOption('first')
  await tab.button('Send the answer').click()
  await tab.ends('answered: {"name":"Ann","seats":2')
  await tab.idle()
})

test('on a phone and in the dark a card is as easy to decide', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit({ ...phone, colorScheme: 'dark' })
  await tab.say(`pay ${thread}`)
  await visible(tab.button('Reject'))
  await tab.looksRight('phone-dark-card')
  const wider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
  expect(await tab.page.evaluate(wider)).toBe(false)
  await tab.button('Stop here').click()
  await visible(tab.page.getByText('Stopped. What was said is kept.'))
})

test('who edits a message is told what came of it and stays done', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.say(`pay ${thread} 7`)
  await tab.button(/^Pay 7 to/).click()
  await visible(tab.page.locator('.tool-call').getByText('done'))
  await tab.idle()
  await tab.say('answer two')
  await visible(tab.page.getByText('Answer two.'))
  await tab.idle()
  const done = tab.page.getByRole('region', { name: 'Already done' })
  await tab.page.locator('.bubble').last().hover()
  await tab.button('Edit your message').last().click()
  await visible(tab.page.getByRole('textbox', { name: 'Your message, to be changed' }))
  expect(await done.isVisible()).toBe(false)
  await tab.button('Cancel').click()
  await tab.page.locator('.bubble').first().hover()
  await tab.button('Edit your message').first().click()
  await visible(done.getByText(/^Pay 7 to /))
  await tab.looksRight('editing-done')
})

/** Sends messages over the API, each after the answer to the one before. */
async function say(chat: string, messages: string[], agent: string): Promise<void> {
  for (const user_message of messages) {
    const response = await fetch(`${scene.stage.url}/chats/${chat}/interactions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user_message, agent }),
    })
    await response.text()
  }
}
/** More turns than the page shows at first. */
const many = Array.from({ length: 21 }, (_, n) => `answer ${n}`)
const focused = 'document.activeElement?.closest(".settled")?.dataset.ask'

test('a decision that is on no call stays in the chat after more messages, and a link leads to it', async () => {
  const { thread, open: visit } = scene.visit()
  const tab = await visit()
  await tab.page.getByRole('combobox', { name: 'Agent' }).selectOption('desk')
  await tab.live()
  await tab.say('plan')
  await visible(card(tab))
  const [id] = await open(thread)
  await decide(id, { approved: true, edited_input: { to: 'bob' } })
  await visible(settled(tab).getByText(/Approved with changes by local/))
  await tab.idle()
  await tab.say('thanks')
  await tab.ends('Yes.')
  await tab.idle()
  await tab.reload()
  await visible(settled(tab).getByText(/Approved with changes by local/))
  await settled(tab).getByText('Original arguments').click()
  await visible(settled(tab).getByText('"to": "ann"'))
  await tab.looksRight('settled-earlier')
  await say(thread, many, 'desk')
  const linked = await visit(undefined, `/t/${thread}#${id}`)
  await expect.poll(() => linked.page.evaluate(focused)).toBe(id)
})

test('a link to a settled budget request leads to it in a long chat', async () => {
  const { thread, open: visit } = scene.visit()
  const headers = { 'content-type': 'application/json' }
  const budget = JSON.stringify({ isHitlEnabled: true, actionLimit: 0 })
  await fetch(`${scene.stage.url}/chats`, {
    ...{ method: 'POST', headers, body: JSON.stringify({ id: thread }) },
  })
  await fetch(`${scene.stage.url}/threads/${thread}/governor`, {
    ...{ method: 'PUT', headers, body: budget },
  })
  const first = say(thread, ['answer first'], 'assistant')
  await expect.poll(() => open(thread)).toHaveLength(1)
  const [id] = await open(thread)
  await decide(id, { newLimit: 99 })
  await first
  await say(thread, many, 'assistant')
  const linked = await visit(undefined, `/t/${thread}#${id}`)
  await expect.poll(() => linked.page.evaluate(focused)).toBe(id)
})
