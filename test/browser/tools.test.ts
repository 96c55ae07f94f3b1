import { describe, expect, test } from 'vitest'
import type { Tab } from './browser.ts'
import { theatre } from './theatre.ts'

const scene = theatre()

/** How often the agent painted this page since it was loaded, and how it looks. */
const painted = ({ page }: Tab) =>
  page.locator('body').evaluate(({ dataset, style }) => [dataset.painted, style.background])

describe.each(['v2', 'v1'] as const)('tools of a page on CopilotKit %s', (flavour) => {
  test('are run in the browser once, and the run goes on with their result', async () => {
    const { thread, open } = scene.visit()
    const tab = await open(flavour)
    const said = ['user: paint teal', 'assistant: I heard: the background is teal.']
    await tab.say('paint teal')
    await tab.ends(said)
    expect(await painted(tab)).toEqual(['1', 'teal'])
    await tab.screenshot(`${flavour}-painted`)
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
    const second = await open(flavour)
    await second.ends(said)
    await tab.reload()
    await tab.ends(said)
    for (const one of [tab, second]) expect(await painted(one)).toEqual([undefined, ''])
  })

  test('may ask the person, whose answer is awaited through a reload', async () => {
    const { thread, open } = scene.visit()
    const tab = await open(flavour)
    await tab.say('seat 12')
    await tab.button('Seat 12A').waitFor()
    await tab.idle()
    await tab.screenshot(`${flavour}-seat`)
    await tab.reload()
    await tab.button('Seat 12B').click()
    const said = ['user: seat 12', 'assistant: I heard: 12B.']
    await tab.ends(said)
    await tab.page.getByText('Chosen: 12B').waitFor()
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
    await tab.reload()
    await tab.ends(said)
    await tab.page.getByText('Chosen: 12B').waitFor()
    expect(await tab.button('Seat 12A').count()).toBe(0)
  })

  test('that ask the person are passed over by typing on', async () => {
    const { open } = scene.visit()
    const tab = await open(flavour)
    await tab.say('seat 7')
    await tab.button('Seat 7A').waitFor()
    await tab.say('hello')
    await tab.ends(['user: seat 7', 'user: hello', 'assistant: I heard: hello.'])
    await tab.say('still there')
    await expect.poll(tab.transcript).toContain('assistant: I heard: still there.')
  })
})
