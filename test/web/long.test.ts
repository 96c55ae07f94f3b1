import { expect, test } from 'vitest'
import { theatre, visible } from './theatre.ts'

const scene = theatre()
const count = 10_000

/** Messages that one request adds. */
const step = 49

/** Fills a chat in several runs, each with many messages of the user. */
async function longChat(thread: string): Promise<void> {
  for (let from = 0; from < count; from += step) {
    const length = Math.min(step, count - from)
    const messages = Array.from({ length }, (_, i) => message(from + i))
    const content = from + step < count ? 'answer soon' : 'answer at last'
    await send(thread, [...messages, { id: `end${from}`, role: 'user', content }])
  }
}

const message = (n: number) => ({ id: `m${n}`, role: 'user', content: `Question number ${n}` })

async function send(threadId: string, messages: object[]): Promise<void> {
  const response = await fetch(`${scene.stage.url}/copilotkit/agent/default/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ threadId, runId: 'r', messages, tools: [], context: [] }),
  })
  expect(await response.text()).toContain('RUN_FINISHED')
}

test('a chat of ten thousand messages opens at its end, scrolls to its beginning and goes on', async () => {
  const { thread, open } = scene.visit()
  await longChat(thread)
  const began = performance.now()
  const tab = await open()
  await visible(tab.page.getByText('Answer at last.'))
  console.log(`10,000 messages shown in ${Math.round(performance.now() - began)} ms`)
  const elements = () =>
    tab.page.evaluate('document.querySelectorAll("*").length') as Promise<number>
  expect(await elements()).toBeLessThan(2_000)

  const scroll = (to: string) =>
    tab.page.evaluate(`document.querySelector('.scroller').scrollTop = ${to}`)
  const shown = () => tab.page.locator('.turn').count()
  const before = await shown()
  await scroll('0')
  await expect.poll(shown).toBeGreaterThan(before)
  await tab.button('Go to the first').click()
  const question = (n: number) =>
    tab.page.locator('.bubble').getByText(`Question number ${n}`, { exact: true })
  await visible(question(0))
  await tab.screenshot('long-first')
  const later = async () => {
    await scroll('1e6')
    return await question(100).count()
  }
  await expect.poll(later, { timeout: 10_000 }).toBe(1)
  expect(await elements()).toBeLessThan(20_000)
  await tab.button('Go to the latest message').click()
  await visible(tab.page.getByText('Answer at last.'))

  const said = performance.now()
  await tab.say('count to 100')
  await tab.idle()
  expect((await tab.transcript()).at(-1)).toMatch(/99 100$/)
  console.log(`100 pieces more in ${Math.round(performance.now() - said)} ms`)
})
