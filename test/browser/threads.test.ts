import { expect, test } from 'vitest'
import { theatre } from './theatre.ts'

const scene = theatre()

test('the threads of a page are listed, renamed and deleted', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('v2')
  const row = tab.page.locator(`[data-thread="${thread}"]`)
  await tab.say('hello')
  await tab.shows(['user: hello', 'assistant: I heard: hello.'])
  await tab.button('Refresh').click()
  await row.waitFor()
  await row.getByRole('button', { name: 'Rename' }).click()
  await row.getByText(`Renamed ${thread}`).waitFor()
  await tab.reload()
  await row.getByText(`Renamed ${thread}`).waitFor()
  await tab.screenshot('v2-threads')
  await row.getByRole('button', { name: 'Delete' }).click()
  await row.waitFor({ state: 'detached' })
  await tab.reload()
  await tab.shows([])
  await tab.button('Refresh').click()
  await expect.poll(async () => await scene.stage.threads()).not.toContain(thread)
  expect(await row.count()).toBe(0)
})
