import { expect, test } from 'vitest'
import { type Tab, theatre, visible } from './theatre.ts'

const scene = theatre()
const begun = 'assistant: Once upon a time'
const whole = 'assistant: Once upon a time there was a handrail.'

/** Something is said on a thread by another way, and answered. */
async function said(thread: string, words: string): Promise<void> {
  const response = await fetch(`${scene.stage.url}/chats/${thread}/interactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user_message: words }),
  })
  await response.text()
}

test('a server killed under an open page: the page says so, comes back by itself and shows the end', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`tell ${thread}`)
  await tab.shows(`user: tell ${thread}`, begun)
  tab.expectTrouble()
  await scene.stage.kill()
  await expect.poll(tab.phase, { timeout: 10_000 }).toBe('reconnecting')
  await tab.hears(/The connection is lost/)
  await visible(tab.page.getByText('The connection is lost. Trying again…'))
  await tab.looksRight('server-gone')
  await tab.shows(`user: tell ${thread}`, begun) // what was seen stays to be seen
  await scene.stage.start()
  scene.stage.open(thread)
  await tab.shows(`user: tell ${thread}`, whole)
  await tab.idle()
  expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
  await tab.say('answer two')
  await expect.poll(tab.transcript).toContain('assistant: Answer two.')
})

test('a server killed before it told how the chat stands is said to be lost as well', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  const held: (() => Promise<void>)[] = []
  await tab.page.route('**/outline', (route) => void held.push(() => route.abort()))
  await tab.say(`tell ${thread}`)
  await tab.shows(`user: tell ${thread}`, begun)
  tab.expectTrouble()
  await scene.stage.kill()
  await tab.page.unroute('**/outline')
  for (const cut of held) await cut()
  await visible(tab.page.getByText('The connection is lost. Trying again…'))
  await scene.stage.start()
  scene.stage.open(thread)
  await tab.shows(`user: tell ${thread}`, whole)
  await tab.idle()
})

/** The state of the only call of a thread, as the server has it. */
async function callState(thread: string): Promise<string | undefined> {
  const outline = await fetch(`${scene.stage.url}/copilotkit/threads/${thread}/outline`)
  const { calls } = (await outline.json()) as Outline
  return Object.values(calls)[0]?.state
}

interface Outline {
  calls: Record<string, { state: string }>
}

/**
 * Until the page has joined a stream, it reads outlines that are older than the stream: `edit` makes them so, and they
 * are answered when the only call of the thread has reached `state`.
 */
async function delayOutlines(
  { page }: Tab,
  thread: string,
  state: string,
  edit: (outline: Outline) => void,
) {
  let joined = false
  page.on('response', (response) => {
    joined ||= response.ok() && response.url().endsWith('/connect')
  })
  await page.route('**/outline', async (route) => {
    if (joined) return await route.continue()
    const response = await route.fetch()
    if (!response.ok()) return await route.fulfill({ response })
    const outline = (await response.json()) as Outline
    await expect.poll(() => callState(thread)).toBe(state)
    edit(outline)
    await route.fulfill({ response, json: outline })
  })
}

const cutOff = /The outcome of (lift|haul) is not known: it ran for too long, or the server stopped/

/** Opens a tab in which the call `lift` runs, and kills the server. */
async function killDuringLift() {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`lift ${thread}`)
  await tab.button('Lift the stone').click()
  await visible(tab.page.locator('.tool-call').getByText('running'))
  tab.expectTrouble()
  await scene.stage.kill()
  return { thread, tab }
}

/** Waits until the page shows the call in doubt, opens the gate of its `check()`, and skips the call. */
async function skipInDoubt(tab: Tab, thread: string): Promise<void> {
  await visible(tab.page.getByText(cutOff))
  scene.stage.open(thread)
  await tab.button('Skip it').click()
  await tab.idle()
}

test('the page shows a call whose server was killed as in doubt, and then asks what happened', async () => {
  const { thread, tab } = await killDuringLift()
  await scene.stage.start()
  await visible(tab.page.getByText(cutOff))
  await tab.screenshot('cut-off')
  await skipInDoubt(tab, thread)
})

test('a call that the page saw start is shown in doubt when the page returns after the recovery', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`haul ${thread}`)
  await visible(tab.page.locator('.tool-call').getByText('running'))
  tab.expectTrouble()
  await tab.page.route('**/outline', (route) => route.abort())
  await scene.stage.kill()
  await scene.stage.start()
  await expect.poll(() => callState(thread)).toBe('unknown')
  await tab.page.unroute('**/outline')
  await skipInDoubt(tab, thread)
})

test('a call that comes in doubt after the page has read the outline is shown in doubt', async () => {
  const { thread, tab } = await killDuringLift()
  await delayOutlines(tab, thread, 'unknown', ({ calls }) => {
    for (const call of Object.values(calls)) call.state = 'running'
  })
  await scene.stage.start()
  await skipInDoubt(tab, thread)
})

test('a call that starts after the page has read the outline is shown as running', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`lift ${thread}`)
  await visible(tab.button('Lift the stone'))
  await tab.live()
  await delayOutlines(tab, thread, 'running', (outline) => {
    outline.calls = {}
  })
  await tab.button('Lift the stone').click()
  await visible(tab.page.locator('.tool-call').getByText('running'))
  await tab.button('Stop').click()
  await visible(tab.page.getByText('Stopped. What was said is kept.'))
})

test('a message that a dead server could not take comes back to be sent again', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say('answer one')
  await tab.idle()
  tab.expectTrouble()
  await scene.stage.kill()
  await tab.say('answer two')
  await visible(tab.page.getByText(/Your message was not sent/))
  expect(await tab.input.inputValue()).toBe('answer two')
  await tab.looksRight('not-sent')
  await scene.stage.start()
  await tab.live()
  await tab.input.press('Enter')
  await tab.shows(
    ...['user: answer one', 'assistant: Answer one.'],
    ...['user: answer two', 'assistant: Answer two.'],
  )
  expect(await scene.stage.runs(thread)).toHaveLength(2)
})

test('a message that was not sent comes back before what was written in the meantime', async () => {
  const { open } = scene.visit()
  const tab = await open()
  await tab.say('answer one')
  await tab.idle()
  tab.expectTrouble()
  const held: (() => Promise<void>)[] = []
  await tab.page.route('**/run', (route) => void held.push(() => route.abort()))
  await tab.say('answer two')
  await tab.input.pressSequentially('answer three')
  for (const cut of held) await cut()
  await visible(tab.page.getByText(/Your message was not sent/))
  expect(await tab.input.inputValue()).toBe('answer two\n\nanswer three')
})

test('a change that was not sent is open again where it was made, and is sent as a change', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say('answer one')
  await tab.idle()
  await tab.say('answer two')
  await tab.idle()
  tab.expectTrouble()
  await tab.page.locator('.bubble').first().hover()
  await tab.button('Edit your message').first().click()
  const box = tab.page.getByRole('textbox', { name: 'Your message, to be changed' })
  await box.fill('answer uno')
  await scene.stage.kill()
  await box.press('Enter')
  await scene.stage.start()
  await visible(tab.page.getByText(/Your change was not sent; it is still open/))
  expect(await box.inputValue()).toBe('answer uno')
  expect(await tab.input.inputValue()).toBe('')
  await tab.live()
  await box.press('Enter')
  await tab.shows('user: answer uno', 'assistant: Answer uno.')
  await tab.idle()
  expect(await scene.stage.runs(thread)).toHaveLength(1)
})

test('a page that is opened while the server is away finds it when it is back', async () => {
  const { thread, open } = scene.visit()
  const first = await open()
  await first.say('answer one')
  await first.idle()
  await first.page.goto('about:blank')
  await scene.stage.kill()
  first.expectTrouble()
  await first.page.goto(`${scene.url}/t/${thread}`)
  await visible(first.page.getByRole('heading', { name: 'The server cannot be reached' }))
  await first.looksRight('no-server')
  await scene.stage.start()
  await first.shows('user: answer one', 'assistant: Answer one.')
  await first.live()
})

test('a second tab shows what the first one does, while it is done', async () => {
  const { thread, open } = scene.visit()
  const first = await open()
  await first.say('answer one')
  await first.idle()
  const second = await open()
  await second.shows('user: answer one', 'assistant: Answer one.')
  await first.say(`tell ${thread}`)
  await second.shows(
    ...['user: answer one', 'assistant: Answer one.'],
    ...[`user: tell ${thread}`, begun],
  )
  await visible(second.button('Stop'))
  await second.live() // it is told everything as it happens
  scene.stage.open(thread)
  for (const tab of [first, second]) {
    await expect.poll(tab.transcript).toContain(whole)
    await tab.idle()
  }
  await second.say('answer three')
  await expect.poll(first.transcript).toContain('assistant: Answer three.')
})

test('Stop gets through however many tabs are open, and each of them hears of what changes', async () => {
  const others = []
  for (let n = 0; n < 6; n++) {
    const { thread, open } = scene.visit()
    await said(thread, `answer ${n}`)
    others.push({ thread, tab: await open() })
  }
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`tell ${thread}`)
  await tab.shows(`user: tell ${thread}`, begun)
  await tab.button('Stop').click()
  await visible(tab.page.getByText('Stopped. What was said is kept.'))
  await tab.idle()
  const last = others.at(-1)!
  await said(last.thread, 'answer more')
  await expect.poll(last.tab.transcript, { timeout: 10_000 }).toContain('assistant: Answer more.')
})

test('a tab that nobody looks at lets its connection go at once, and catches up when it is seen', async () => {
  const { thread, open } = scene.visit()
  await said(thread, 'answer one')
  const tab = await open()
  const look = (state: string) =>
    tab.page.evaluate(`
      Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    `)
  const left = tab.page.waitForEvent('requestfailed', {
    predicate: (request) => request.url().endsWith('/watch'),
    timeout: 5_000,
  })
  await look('hidden')
  await left
  await said(thread, 'answer two')
  await look('visible')
  await expect.poll(tab.transcript, { timeout: 10_000 }).toContain('assistant: Answer two.')
})

test('a Stop that does not reach the server says that it has to be pressed again', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`tell ${thread}`)
  await tab.shows(`user: tell ${thread}`, begun)
  tab.expectTrouble()
  await tab.page.route('**/stop/**', (route) => route.abort())
  await tab.button('Stop').click()
  const note = tab.page
    .locator('.notice')
    .getByText('Stop did not reach the server. Press it again.')
  await visible(note)
  await tab.page.unroute('**/stop/**')
  await tab.button('Stop').click()
  await visible(tab.page.getByText('Stopped. What was said is kept.'))
  expect(await note.count()).toBe(0)
})

test('a decision made elsewhere is seen here', async () => {
  const { thread, open } = scene.visit()
  const first = await open()
  await first.say(`Write a file named ${thread}.txt with the text hello`)
  await visible(first.button(/^Write /))
  const second = await open()
  await second.button('Reject').click()
  await visible(second.page.getByLabel(/^Why\?/))
  await second.button('Reject').click()
  await visible(first.page.locator('.tool-call').getByText('not done'))
  await first.idle()
  expect(await first.button(/^Write /).count()).toBe(0)
})
