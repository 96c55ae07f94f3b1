import { expect, test } from 'vitest'
import { type Tab, theatre, visible } from './theatre.ts'

const scene = theatre({ HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: '2' })
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }

const prompt = (tab: Tab) => tab.page.locator('.reconfigure')
const meter = (tab: Tab) => tab.page.getByRole('button', { name: /^Budget:/ })
const uses = (tab: Tab, words: string | RegExp) =>
  expect.poll(() => meter(tab).textContent(), { timeout: 20_000 }).toMatch(words)

/** A chat whose budget is used up after two steps. */
async function spent(steps = 3, options?: Parameters<ReturnType<typeof scene.visit>['open']>[0]) {
  scene.stage.open('always')
  const { thread, open } = scene.visit()
  const tab = await open(options)
  await tab.say(`steps ${steps}`)
  await visible(prompt(tab))
  return { tab, thread, open }
}

test('the prompt says what was done and what comes next, is there after a reload, and more is given', async () => {
  const { tab } = await spent()
  await visible(prompt(tab).getByRole('heading', { name: /All 2 model calls/ }))
  await visible(prompt(tab).getByText(/2 model calls since the budget was given/))
  await visible(prompt(tab).getByText(/One call of demo by assistant: result of slow_printer/))
  await visible(prompt(tab).getByText(/left, then the run is stopped\.$/))
  await uses(tab, '2 / 2 calls')
  await tab.hears(/Needs your decision: All 2 model calls/)
  await tab.looksRight('budget')
  await tab.reload()
  await visible(prompt(tab))
  await tab.button('2 more calls').click()
  await tab.ends('All steps are made.')
  await tab.idle()
  await visible(tab.page.locator('.settled').getByText(/The budget was set by local/))
  await uses(tab, '2 / 2 calls')
  await tab.looksRight('budget-continued')
})

test('another number: what is no number is refused in words, and what is one is the new limit', async () => {
  const { tab } = await spent()
  const own = prompt(tab).getByLabel('Another number of calls')
  await own.fill('0')
  await tab.button('Continue').click()
  await visible(prompt(tab).getByText('Give a whole number from 1 to 1,000,000.'))
  await own.fill('7')
  await tab.button('Continue').click()
  await tab.idle()
  await uses(tab, '2 / 7 calls')
})

test('no limit, a summary, a cheaper model, and stop', async () => {
  const unlimited = await spent()
  await unlimited.tab.button('No limit').click()
  await unlimited.tab.idle()
  await uses(unlimited.tab, '4 callsno limit')

  const summary = await spent()
  await summary.tab.button(/^Finish with a summary/).click()
  await expect
    .poll(() => scene.stage.runs(summary.thread), { timeout: 20_000 })
    .toMatchObject([{ status: 'COMPLETED' }])
  await summary.tab.idle()

  const cheaper = await spent()
  await cheaper.tab.button(/^Go on with/).click()
  await cheaper.tab.ends('All steps are made.')
  await cheaper.tab.idle()

  const stopped = await spent()
  await stopped.tab.button('Stop here').click()
  await visible(stopped.tab.page.getByText('Stopped. What was said is kept.'))
  expect(await scene.stage.runs(stopped.thread)).toMatchObject([{ status: 'CANCELLED' }])
})

test('answered elsewhere, the prompt changes by itself; the meter is set on and off', async () => {
  const { tab, thread } = await spent()
  await fetch(`${scene.stage.url}/threads/${thread}/governor`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ actionLimit: 9 }),
  })
  await tab.idle()
  await expect.poll(() => prompt(tab).count()).toBe(0)
  await uses(tab, '2 / 9 calls')

  await meter(tab).click()
  const panel = tab.page.getByRole('region', { name: 'Budget' })
  await panel.getByLabel('Model calls before I am asked').fill('many')
  await tab.button('Set').click()
  await visible(panel.getByText(/whole number up to/))
  await tab.looksRight('meter')
  await panel.getByLabel('Model calls before I am asked').fill('3')
  await tab.button('Set').click()
  await uses(tab, '2 / 3 calls')
  await meter(tab).click()
  await panel.getByLabel('Ask me when the limit is reached').uncheck()
  await tab.button('Set').click()
  await uses(tab, /no limit/)
  await tab.say('steps 1')
  await tab.idle()
  await uses(tab, '6 callsno limit')
})

test('the meter moves with every call, while the answer is still being made', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`walk ${thread}`)
  await visible(tab.page.locator('.tool-call').getByText('running'))
  await uses(tab, '1 / 2 calls')
  scene.stage.open(`${thread}-1`)
  await uses(tab, '2 / 2 calls')
  await visible(tab.button('Stop'))
  scene.stage.open(`${thread}-2`)
  await visible(prompt(tab))
})

test('a limit is set before the first message, in calls and tokens, and holds from it on', async () => {
  scene.stage.open('always')
  const { thread, open } = scene.visit()
  const tab = await open()
  await uses(tab, 'No calls yet')
  await meter(tab).click()
  const panel = tab.page.getByRole('region', { name: 'Budget' })
  await panel.getByLabel('Model calls before I am asked').fill('1')
  await panel.getByLabel(/^Tokens/).fill('many')
  await tab.button('Set').click()
  await visible(panel.getByText('Tokens are a whole number, or nothing.'))
  await panel.getByLabel(/^Tokens/).fill('900000')
  await tab.looksRight('meter-planned')
  await tab.button('Set').click()
  await uses(tab, '0 / 1 calls')
  await tab.say('steps 2')
  await visible(prompt(tab))
  await uses(tab, /^Budget: 1 \/ 1 calls[\d,]+ \/ 900,000 tokens$/)
  const response = await fetch(`${scene.stage.url}/threads/${thread}/governor`)
  expect(await response.json()).toMatchObject({ actionLimit: 1, tokens: { limit: 900_000 } })
  await meter(tab).click()
  await panel.getByLabel('Model calls before I am asked').fill('9')
  await panel.getByLabel(/^Tokens/).fill('')
  await panel.getByLabel(/^Money/).fill('2.5')
  await tab.button('Set').click()
  await tab.ends('All steps are made.')
  await uses(tab, /^Budget: 2 \/ 9 calls[\d.]+ \/ 2\.5 money$/)
})

test('on a phone and in the dark the prompt is as easy to answer', async () => {
  const { tab } = await spent(3, { ...phone, colorScheme: 'dark' })
  await tab.looksRight('phone-dark-budget')
  const wider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
  expect(await tab.page.evaluate(wider)).toBe(false)
})
