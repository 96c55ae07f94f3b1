import { expect, test } from 'vitest'
import { theatre, visible } from './theatre.ts'

const scene = theatre()

test('a run is looked into: entries, durations, tokens, and where it stood at any point', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`pay ${thread}`)
  await tab.button(/^Pay 5 to/).click()
  await tab.idle()
  await tab.ends('Heard: 5 sent')
  await tab.say('hello')
  await tab.ends('Try one of these')
  await tab.idle()
  await tab.page.getByRole('link', { name: 'Look into this run, step by step' }).last().click()
  const state = tab.page.getByRole('region', { name: 'State at this point' })
  const entries = tab.page.getByRole('list', { name: 'Entries' }).getByRole('listitem')
  await visible(state.getByText('completed'))
  await visible(state.getByText(/^[1-9]\d* in, [1-9]\d* out$/))
  expect(await tab.page.locator('.timeline').textContent()).not.toContain('ask.raised')

  const response = await fetch(`${scene.stage.url}/chats/${thread}`)
  const { interactions } = (await response.json()) as { interactions: { id: string }[] }
  await tab.page.goto(`${scene.url}/t/${thread}/runs/${interactions[0]?.id}`)
  await visible(state.getByText('completed'))
  await visible(state.getByText('2 of models, 1 of tools'))
  await visible(entries.getByText('ask.raised'))
  const raised = entries.filter({ hasText: 'ask.raised' })
  await raised.locator('summary').click()
  await visible(raised.getByText(/"kind": "approval"/))
  await visible(state.getByText(/^Pay 5 to/)) // it was open then
  await visible(state.getByText('1 of models, 0 of tools'))
  await tab.looksRight('inspector')
  const slider = tab.page.getByRole('slider')
  await slider.focus()
  await slider.press('End')
  await visible(state.getByText('completed'))
  await slider.press('Home')
  await expect.poll(() => state.textContent()).not.toContain('completed')
  await tab.page.getByRole('link', { name: 'To the chat', exact: true }).click()
  await tab.live()
  await visible(tab.page.getByText('hello').first())
})

test('a run is looked into while it is under way, and what happens comes by itself', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  await tab.say(`tell ${thread}`)
  await tab.ends('Once upon a time')
  const response = await fetch(`${scene.stage.url}/chats/${thread}`)
  const { interactions } = (await response.json()) as { interactions: { id: string }[] }
  await tab.page.goto(`${scene.url}/t/${thread}/runs/${interactions[0]?.id}`)
  const state = tab.page.getByRole('region', { name: 'State at this point' })
  await visible(state.getByText('running', { exact: true }))
  await visible(tab.page.getByText('Under way', { exact: true }).first())
  const before = await tab.page.locator('.timeline > li').count()
  scene.stage.open(thread)
  await visible(state.getByText('completed'))
  expect(await tab.page.locator('.timeline > li').count()).toBeGreaterThan(before)
  await expect.poll(() => tab.page.locator('.connection').count()).toBe(0)
})

test('a run that is not there is said to be, on a phone and in the dark too', async () => {
  const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }
  const { thread, open } = scene.visit()
  const tab = await open({ ...phone, colorScheme: 'dark' })
  await tab.say('answer one')
  await tab.idle()
  await tab.page.getByRole('link', { name: 'Look into this run, step by step' }).click()
  await visible(tab.page.getByText('run.completed'))
  await tab.looksRight('phone-dark-inspector')
  const wider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
  expect(await tab.page.evaluate(wider)).toBe(false)
  tab.expectTrouble()
  await tab.page.goto(`${scene.url}/t/${thread}/runs/run_nobody`)
  await visible(tab.page.getByRole('alert').filter({ hasText: /run/i }))
})
