import { describe, expect, test } from 'vitest'
import { theatre } from './theatre.ts'

const scene = theatre()
const begun = 'assistant: Once upon a time'
const whole = 'assistant: Once upon a time there was a handrail.'

describe.each(['v2', 'v1'] as const)('a page on CopilotKit %s', (flavour) => {
  test('chats, again and again', async () => {
    const { thread, open } = scene.visit()
    const tab = await open(flavour)
    await tab.say('hello')
    await tab.ends(['user: hello', 'assistant: I heard: hello.'])
    await tab.say('and again')
    const said = [
      'user: hello',
      'assistant: I heard: hello.',
      'user: and again',
      'assistant: I heard: and again.',
    ]
    await tab.ends(said)
    await tab.screenshot(`${flavour}-chat`)
    expect(await scene.stage.runs(thread)).toEqual([
      { said: 'hello', status: 'COMPLETED' },
      { said: 'and again', status: 'COMPLETED' },
    ])
    await tab.reload()
    await tab.ends(said)
  })

  test('shows an answer while it is made, and finds it again after a reload in mid-run', async () => {
    const { thread, open } = scene.visit()
    const tab = await open(flavour)
    const user = `user: tell ${thread}`
    await tab.say(`tell ${thread}`)
    await tab.shows([user, begun])
    await tab.screenshot(`${flavour}-streaming`)
    await tab.reload()
    await tab.shows([user, begun])
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'RUNNING' }])
    scene.stage.open(thread)
    await tab.ends([user, whole])
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
    await tab.say('hello')
    await tab.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
  })

  test('stops when told to, keeps what was said, and takes the next message', async () => {
    const { thread, open } = scene.visit()
    const tab = await open(flavour)
    const user = `user: tell ${thread}`
    await tab.say(`tell ${thread}`)
    await tab.shows([user, begun])
    await tab.stop()
    await tab.idle()
    await tab.shows([user, begun])
    await tab.screenshot(`${flavour}-stopped`)
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'CANCELLED' }])
    await tab.say('hello')
    await tab.ends([user, begun, 'user: hello', 'assistant: I heard: hello.'])
    await tab.reload()
    await tab.ends([user, begun, 'user: hello', 'assistant: I heard: hello.'])
  })

  test('stops a run that it joined by a reload', async () => {
    const { thread, open } = scene.visit()
    const tab = await open(flavour)
    await tab.say(`tell ${thread}`)
    await tab.shows([`user: tell ${thread}`, begun])
    await tab.reload()
    await tab.shows([`user: tell ${thread}`, begun])
    await tab.stop()
    await tab.idle()
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'CANCELLED' }])
  })

  test('is the same in a second tab, also while an answer is made', async () => {
    const { thread, open } = scene.visit()
    const first = await open(flavour)
    const user = `user: tell ${thread}`
    await first.say(`tell ${thread}`)
    await first.shows([user, begun])
    const second = await open(flavour)
    await second.shows([user, begun])
    scene.stage.open(thread)
    for (const tab of [first, second]) {
      await tab.ends([user, whole])
    }
    await second.say('hello')
    await second.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
    const third = await open(flavour)
    await third.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
  })
})

test('a page on CopilotKit v2 shows reasoning apart from the answer', async () => {
  const { open } = scene.visit()
  const tab = await open('v2')
  await tab.say('think now')
  await tab.ends(['user: think now', 'assistant: I heard: think now.'])
  await tab.page.getByText('Thought').click()
  await tab.page.getByText('It is a short question.').waitFor()
  await tab.screenshot('v2-reasoning')
})

test('the threads of a page are listed, renamed and deleted', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('v2')
  const row = tab.page.locator(`[data-thread="${thread}"]`)
  const answered = (method: string) =>
    tab.page.waitForResponse((response) => response.request().method() === method)
  await tab.say('hello')
  await tab.ends(['user: hello', 'assistant: I heard: hello.'])
  await tab.button('Refresh').click()
  // The page shows both changes before the server has them.
  await Promise.all([answered('PATCH'), row.getByRole('button', { name: 'Rename' }).click()])
  await tab.reload()
  await row.getByText(`Renamed ${thread}`).waitFor()
  await tab.screenshot('v2-threads')
  await Promise.all([answered('DELETE'), row.getByRole('button', { name: 'Delete' }).click()])
  await row.waitFor({ state: 'detached' })
  expect(await scene.stage.threads()).not.toContain(thread)
  await Promise.all([tab.page.waitForResponse(/\/threads\?/), tab.reload()])
  await tab.ends([])
  expect(await row.count()).toBe(0)
})
