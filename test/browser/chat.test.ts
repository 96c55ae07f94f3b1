import { describe, expect, test } from 'vitest'
import { theatre } from './theatre.ts'

const scene = theatre()

describe.each(['v2', 'v1'] as const)('a page on CopilotKit %s', (flavour) => {
  test('chats, again and again', async () => {
    const { thread, open } = await scene.visit()
    const tab = await open(flavour)
    await tab.say('hello')
    await tab.shows(['user: hello', 'assistant: I heard: hello.'])
    await tab.idle()
    await tab.say('and again')
    await tab.shows([
      'user: hello',
      'assistant: I heard: hello.',
      'user: and again',
      'assistant: I heard: and again.',
    ])
    await tab.idle()
    await tab.screenshot(`${flavour}-chat`)
    expect(await scene.stage.runs(thread)).toEqual([
      { said: 'hello', status: 'COMPLETED' },
      { said: 'and again', status: 'COMPLETED' },
    ])
  })

  test('shows an answer while it is made', async () => {
    const { thread, open } = await scene.visit()
    const tab = await open(flavour)
    await tab.say(`tell ${thread}`)
    await tab.shows([`user: tell ${thread}`, 'assistant: Once upon a time'])
    await tab.screenshot(`${flavour}-streaming`)
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'RUNNING' }])
    scene.stage.open(thread)
    await tab.shows([`user: tell ${thread}`, 'assistant: Once upon a time there was a handrail.'])
    await tab.idle()
  })
})
