import { describe, expect, test } from 'vitest'
import { theatre } from './theatre.ts'

const scene = theatre()
const begun = 'assistant: Once upon a time'
const whole = 'assistant: Once upon a time there was a handrail.'

describe.each(['v2', 'v1'] as const)('a server killed under a page of CopilotKit %s', (flavour) => {
  test('goes on with the answer in its next life, and the reloaded page shows it once', async () => {
    const { thread, open } = scene.visit()
    const user = `user: tell ${thread}`
    const tab = await open(flavour)
    await tab.say(`tell ${thread}`)
    await tab.shows([user, begun])
    tab.expectTrouble()
    await scene.stage.kill()
    await tab.idle()
    await tab.screenshot(`${flavour}-server-gone`)
    await scene.stage.start()
    await tab.reload()
    await tab.shows([user, begun])
    scene.stage.open(thread)
    await tab.ends([user, whole])
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
    await tab.say('hello')
    await tab.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
  })

  test('does not need a reload: the next message brings back what was lost', async () => {
    const { thread, open } = scene.visit()
    const user = `user: tell ${thread}`
    const tab = await open(flavour)
    await tab.say(`tell ${thread}`)
    await tab.shows([user, begun])
    tab.expectTrouble()
    await scene.stage.kill()
    await tab.idle()
    scene.stage.open(thread)
    await scene.stage.start()
    const status = async () => (await scene.stage.runs(thread))[0]?.status
    await expect.poll(status, { timeout: 10_000 }).toBe('COMPLETED')
    await tab.say('hello')
    await tab.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
  })
})
