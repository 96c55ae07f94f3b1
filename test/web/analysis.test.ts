import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type Tab, theatre, visible } from './theatre.ts'

const scene = theatre({
  HANDRAIL_CONFIG: fileURLToPath(new URL('./analysis.config.mjs', import.meta.url)),
})
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }

/** An analysis of its own, begun. */
async function analysis(account: string, options?: object) {
  const { thread, open } = scene.visit()
  const path = `/analysis/${thread}`
  const tab = await open(options, path)
  await tab.page.getByLabel('Account', { exact: true }).fill(account)
  await tab.button('Analyse').click()
  return { thread, tab, open: () => open(undefined, path) }
}

const stop = (tab: Tab, title: string) =>
  tab.page.locator('.station').filter({ has: tab.page.getByRole('heading', { name: title }) })
/** How the three agents and the decision stand, in order. */
const faces = (tab: Tab) =>
  tab.page
    .locator('.station')
    .evaluateAll((all: { getAttribute(name: string): string | null }[]) =>
      all.map((one) => one.getAttribute('data-face')),
    )
const stands = (tab: Tab, ...expected: string[]) =>
  expect.poll(() => faces(tab), { timeout: 20_000 }).toEqual(expected)
const asked = async (tab: Tab) => await stands(tab, 'done', 'done', 'done', 'asking')

test('an account is chosen and analysed: results that can be read, and a recommendation that is approved', async () => {
  const { open } = scene.visit()
  const tab = await open(undefined, '/')
  await tab.page.getByRole('link', { name: 'Account analysis' }).click()
  await visible(tab.page.getByRole('heading', { name: 'Which account?' }))
  await tab.live()
  await tab.button('Analyse').click()
  await visible(tab.page.getByText('Choose an account, or type its id.'))
  await tab.button('ACC-002').click()
  await tab.looksRight('analysis-choose')
  await tab.button('Analyse').click()
  await tab.hears(/Needs your decision: Approve retention_call for ACC-002/)
  await asked(tab)
  await visible(tab.page.getByRole('heading', { name: 'ACC-002: analysis', level: 1 }))
  const account = stop(tab, 'The account')
  await visible(account.getByRole('heading', { name: /Harbour Foods/ }))
  await visible(account.getByText('sample data, not from a real CRM'))
  await visible(account.getByRole('cell', { name: 'Stalled' }))
  expect(await account.locator('.station-time').textContent()).toMatch(/^[\d.]+ m?s$/)
  await visible(stop(tab, 'Its history').getByText(/^ACC-002 was not spoken of in earlier chats/))
  const ideas = stop(tab, 'What to do')
  await visible(ideas.getByRole('heading', { name: /^Retention call/ }))
  await visible(ideas.getByText('high priority'))
  await visible(ideas.getByText('Keeps the account from leaving this quarter.', { exact: true }))
  expect(await ideas.getByText('"action_type"').isVisible()).toBe(false)
  await ideas.getByText('As JSON').click()
  await visible(ideas.getByText('"action_type": "retention_call"').first())
  await ideas.getByText('As JSON').click()
  const card = tab.page.locator('.ask-card')
  await tab.button('Show what is asked').click()
  await expect.poll(() => tab.page.evaluate('document.activeElement?.tagName')).toBe('H2')
  await visible(card.getByText(/min( \d+ s)? left, then it is rejected\./))
  await tab.looksRight('analysis-asked')
  await tab.button(/^Approve retention_call for ACC-002/).click()
  await visible(tab.page.getByText('The analysis is done. Approved: Retention call.'))
  await stands(tab, 'done', 'done', 'done', 'done')
  await visible(tab.page.locator('.settled').getByText(/Approved by local/))
  await tab.hears('The analysis is finished.')
  await tab.looksRight('analysis-approved')
  await tab.reload()
  await visible(tab.page.getByText('The analysis is done. Approved: Retention call.'))
  await visible(account.getByRole('heading', { name: /Harbour Foods/ }))
})

test('the recommendation is changed before it is approved, and what was approved is the result', async () => {
  const { tab } = await analysis('ACC-001')
  await asked(tab)
  await tab.button('Change and approve').click()
  const card = tab.page.locator('.ask-card')
  await card.getByLabel('priority').selectOption('high')
  await card.getByLabel('action_type').fill('price_offer')
  expect(await card.getByLabel('account_id').count()).toBe(0)
  await tab.looksRight('analysis-edit')
  await tab.button('Approve with 2 changes').click()
  await visible(tab.page.getByText('The analysis is done. Approved: Price offer.'))
  await visible(tab.page.locator('.settled').getByText(/Approved with changes by local/))
  const first = stop(tab, 'What to do').getByRole('listitem').first()
  await visible(first.getByRole('heading', { name: /^Price offer high priority/ }))
})

test('the recommendation is rejected with a reason, and the analysis ends with what it found', async () => {
  const { tab, thread } = await analysis('ACC-006')
  await asked(tab)
  await tab.button('Reject').click()
  await tab.page.getByLabel(/^Why\?/).fill('Not this quarter')
  await tab.button('Reject').click()
  await visible(tab.page.getByText('The analysis is done. Not approved: Account review.'))
  await visible(tab.page.locator('.settled').getByText('“Not this quarter”'))
  await stands(tab, 'done', 'done', 'done', 'stopped')
  await tab.looksRight('analysis-rejected')
  expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
})

test('a step it can do without fails: that is said in words, and the rest goes on', async () => {
  const { tab } = await analysis('ACC-007', { colorScheme: 'dark' })
  await stands(tab, 'done', 'failed', 'done', 'asking')
  await visible(stop(tab, 'Its history').getByText(/The notes are lost\..*goes on without it/))
  await tab.looksRight('dark-analysis-optional')
  await tab.reload()
  await stands(tab, 'done', 'failed', 'done', 'asking')
})

test('a step it cannot do without fails: the rest is skipped, and it can be tried again', async () => {
  const { tab } = await analysis('NOBODY-1', { ...phone, colorScheme: 'dark' })
  await stands(tab, 'failed', 'skipped', 'skipped', 'skipped')
  await visible(stop(tab, 'The account').getByText(/^There is no account NOBODY-1/))
  await visible(tab.page.getByText('The analysis could not be finished.'))
  await tab.looksRight('phone-dark-analysis-failed')
  const tries = () => scene.stage.guests().filter((id) => id === 'NOBODY-1').length
  expect(tries()).toBe(1)
  await tab.button('Try again').click()
  await expect.poll(tries).toBe(2)
  await stands(tab, 'failed', 'skipped', 'skipped', 'skipped')
})

test('a budget that is used up is asked about on the way, and it goes on with more', async () => {
  const { thread, open } = scene.visit()
  const tab = await open(undefined, `/analysis/${thread}`)
  await tab.page.getByRole('button', { name: /^Budget:/ }).click()
  await tab.page.getByLabel('Model calls before I am asked').fill('0')
  await tab.button('Set').click()
  await tab.page.getByLabel('Account', { exact: true }).fill('ACC-008')
  await tab.button('Analyse').click()
  await stands(tab, 'done', 'done', 'asking', 'asking')
  await visible(tab.page.getByText(/One call of demo by recommendation_author/))
  await tab.looksRight('analysis-budget')
  await tab.page.getByLabel('Another number of calls').fill('5')
  await tab.button('Continue').click()
  await asked(tab)
  await tab.button(/^Approve account_review/).click()
  await visible(tab.page.getByText('The analysis is done. Approved: Account review.'))
})

test('a reload in the middle, and a second tab: each shows how far it is, and what comes', async () => {
  const { tab, open } = await analysis('ACC-003')
  await stands(tab, 'done', 'working', 'waiting', 'waiting')
  await visible(stop(tab, 'The account').getByRole('heading', { name: /Lumen Clinics/ }))
  await tab.looksRight('analysis-working')
  await tab.reload()
  await stands(tab, 'done', 'working', 'waiting', 'waiting')
  await visible(stop(tab, 'The account').getByRole('heading', { name: /Lumen Clinics/ }))
  const second = await open()
  await stands(second, 'done', 'working', 'waiting', 'waiting')
  scene.stage.open('ACC-003')
  for (const one of [tab, second]) await asked(one)
  await second.button(/^Approve account_review/).click()
  for (const one of [tab, second])
    await visible(one.page.getByText('The analysis is done. Approved: Account review.'))
})

test('a server killed in step two: the page says so, and all comes back without step one again', async () => {
  const { tab, thread } = await analysis('ACC-004')
  await stands(tab, 'done', 'working', 'waiting', 'waiting')
  tab.expectTrouble()
  await scene.stage.kill()
  await expect.poll(tab.phase, { timeout: 10_000 }).toBe('reconnecting')
  await visible(stop(tab, 'The account').getByRole('heading', { name: /Brightway Schools/ }))
  await visible(tab.page.locator('.working').getByText(/^The connection is lost/))
  await tab.looksRight('analysis-server-gone')
  await scene.stage.start()
  scene.stage.open('ACC-004')
  await asked(tab)
  await tab.live()
  await tab.button(/^Approve onboarding_session/).click()
  await visible(tab.page.getByText('The analysis is done. Approved: Onboarding session.'))
  expect(scene.stage.guests().filter((id) => id === 'ACC-004')).toHaveLength(1)
  expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
})

test('it is stopped in the middle; on a phone everything fits, and the list leads back to it', async () => {
  const { tab, thread } = await analysis('ACC-005', phone)
  await stands(tab, 'done', 'working', 'waiting', 'waiting')
  await tab.looksRight('phone-analysis')
  const wider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
  expect(await tab.page.evaluate(wider)).toBe(false)
  await tab.button('Stop the analysis').click()
  await visible(tab.page.getByText('The analysis was stopped. What was found is kept.'))
  await stands(tab, 'done', 'stopped', 'skipped', 'skipped')
  await tab.page.goto(`${scene.url}/analysis`)
  await visible(tab.page.getByRole('heading', { name: 'Earlier analyses' }))
  await tab.page.locator(`.earlier a[href="/analysis/${thread}"]`).click()
  await stands(tab, 'done', 'stopped', 'skipped', 'skipped')
  await tab.page.getByRole('link', { name: 'As a chat' }).click()
  await tab.shows('user: ACC-005: analyse this account', expect.stringContaining('Cobalt Freight'))
})
