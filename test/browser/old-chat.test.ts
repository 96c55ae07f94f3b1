import { expect, test } from 'vitest'
import { theatre } from './theatre.ts'

const scene = theatre()
const begun = 'assistant: Once upon a time'
const whole = 'assistant: Once upon a time there was a handrail.'
const hello = ['user: hello', 'assistant: I heard: hello.']

/** A page of the old client speaks to an agent of its choice, or to whoever answers. */
const locked = { agent: 'assistant', name: 'locked' }
const kinds = [
  ['a page', { name: 'free' }],
  ['a page locked to an agent', locked],
] as const

const statuses = async (thread: string) =>
  (await scene.stage.runs(thread)).map(({ status }) => status)
const patience = { timeout: 10_000, interval: 50 }

test.each(kinds)('%s of CopilotKit 1.10 chats, again and again', async (_, options) => {
  const { thread, open } = scene.visit()
  const tab = await open('old', options)
  const said: string[] = []
  for (const text of ['hello', 'and again', 'and once more']) {
    await tab.say(text)
    said.push(`user: ${text}`, `assistant: I heard: ${text}.`)
    await tab.ends(said)
  }
  await tab.screenshot(`old-chat-${options.name}`)
  expect(await scene.stage.runs(thread)).toEqual([
    { said: 'hello', status: 'COMPLETED' },
    { said: 'and again', status: 'COMPLETED' },
    { said: 'and once more', status: 'COMPLETED' },
  ])
})

test.each(kinds)('%s of CopilotKit 1.10 shows an answer while it is made', async (_, options) => {
  const { thread, open } = scene.visit()
  const tab = await open('old', options)
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  await tab.screenshot('old-streaming')
  expect(await statuses(thread)).toEqual(['RUNNING'])
  scene.stage.open(thread)
  await tab.ends([user, whole])
  await tab.say('hello')
  await tab.ends([user, whole, ...hello])
  expect(await statuses(thread)).toEqual(['COMPLETED', 'COMPLETED'])
})

test('a reloaded page of CopilotKit 1.10 finds its thread, also in the next life of the server', async () => {
  const { open } = scene.visit()
  const tab = await open('old', locked)
  await tab.say('hello')
  await tab.ends(hello)
  await tab.reload()
  await tab.ends(hello)
  tab.expectTrouble()
  await scene.stage.kill()
  await scene.stage.start()
  await tab.reload()
  await tab.ends(hello)
  await tab.say('and again')
  await tab.ends([...hello, 'user: and again', 'assistant: I heard: and again.'])
})

test('a reloaded page of CopilotKit 1.10 that asks for no thread gets it with the next answer', async () => {
  const { open } = scene.visit()
  const tab = await open('old')
  await tab.say('hello')
  await tab.ends(hello)
  await tab.reload()
  await tab.ends([])
  await tab.say('and again')
  const said = [...hello, 'user: and again', 'assistant: I heard: and again.']
  await tab.ends(said)
  await tab.say('hello')
  await tab.ends([...said, ...hello])
})

test('a reload in mid-run stops nothing on CopilotKit 1.10, and the next message brings it all', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', locked)
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  await tab.reload()
  await expect.poll(tab.transcript, patience).toContain(user)
  await tab.page.waitForTimeout(3_500) // longer than the server waits for a page to come back
  expect(await statuses(thread)).toEqual(['RUNNING'])
  scene.stage.open(thread)
  await expect.poll(() => statuses(thread), patience).toEqual(['COMPLETED'])
  await tab.say('hello')
  await tab.ends([user, whole, ...hello])
  await tab.screenshot('old-after-reload')
  await tab.reload()
  await tab.ends([user, whole, ...hello])
})

test.each(kinds)(
  'a server killed under %s of CopilotKit 1.10 goes on, and the next message brings it all',
  async (_, options) => {
    const { thread, open } = scene.visit()
    const tab = await open('old', options)
    const user = `user: tell ${thread}`
    await tab.say(`tell ${thread}`)
    await tab.shows([user, begun])
    tab.expectTrouble()
    await scene.stage.kill()
    await tab.idle()
    await tab.screenshot('old-server-gone')
    scene.stage.open(thread)
    await scene.stage.start()
    await expect.poll(() => statuses(thread), patience).toEqual(['COMPLETED'])
    await tab.say('hello')
    await tab.ends([user, whole, ...hello])
  },
)

test('the stop button of CopilotKit 1.10 stops the run on the server', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old')
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  await tab.stop()
  await tab.idle()
  await tab.shows([user, begun])
  await tab.screenshot('old-stopped')
  await expect.poll(() => statuses(thread), patience).toEqual(['CANCELLED'])
  await tab.say('hello')
  await tab.ends([user, begun, ...hello])
})

test('a message after the stop button of CopilotKit 1.10 stops the run at once', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', locked)
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  await tab.stop()
  await tab.idle()
  await tab.say('hello')
  await tab.ends([user, begun, ...hello])
  expect(await statuses(thread)).toEqual(['CANCELLED', 'COMPLETED'])
})

test('an answer that is asked for once more on CopilotKit 1.10 is the answer that was given', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', locked)
  await tab.say('hello')
  await tab.ends(hello)
  await tab.page.getByRole('button', { name: 'Regenerate response' }).click()
  await tab.ends(hello)
  await tab.say('and again')
  await tab.ends([...hello, 'user: and again', 'assistant: I heard: and again.'])
  expect(await statuses(thread)).toEqual(['COMPLETED', 'COMPLETED'])
})

test.each(kinds)('%s of CopilotKit 1.10 shows what went wrong, and goes on', async (_, options) => {
  const { thread, open } = scene.visit()
  const tab = await open('old', { ...options, console: 'on' })
  tab.expectTrouble()
  await tab.say('fail now')
  await tab.page.getByRole('alert').getByText('The library is closed.').waitFor()
  await tab.idle()
  await tab.screenshot('old-error')
  await tab.button('Dismiss').click()
  await tab.say('hello')
  await tab.ends(['user: fail now', ...hello])
  expect(await statuses(thread)).toEqual(['FAILED', 'COMPLETED'])
})

test('a page of CopilotKit 1.10 is told which agents there are when its own is not there', async () => {
  const { open } = scene.visit()
  const tab = await open('old', { agent: 'nobody', console: 'on' })
  await tab.page.getByRole('alert').getByText('assistant, librarian').waitFor()
  await tab.screenshot('old-no-agent')
})

test('a thread is the same on CopilotKit 1.10 and on the current one', async () => {
  const { thread, open } = scene.visit()
  const old = await open('old', locked)
  await old.say('hello')
  await old.ends(hello)
  const current = await open('v2')
  await current.ends(hello)
  await current.say('from here')
  const said = [...hello, 'user: from here', 'assistant: I heard: from here.']
  await current.ends(said)
  await old.say('from there') // it has not seen what was said on the other page
  said.push('user: from there', 'assistant: I heard: from there.')
  await old.ends(said)
  await old.screenshot('old-shared-thread')
  await current.reload()
  await current.ends(said)
  await current.say(`tell ${thread}`)
  said.push(`user: tell ${thread}`)
  await current.shows([...said, begun])
  await old.reload() // a look at what runs elsewhere stops nothing
  scene.stage.open(thread)
  await current.ends([...said, whole])
  await old.reload()
  await old.ends([...said, whole])
})

test('a message from another tab of CopilotKit 1.10 ends what runs, and both tabs go on', async () => {
  const { thread, open } = scene.visit()
  const first = await open('old', locked)
  const said = [`user: tell ${thread}`, begun]
  await first.say(`tell ${thread}`)
  await first.shows(said)
  const second = await open('old', locked)
  await second.say('hello')
  said.push(...hello)
  await second.ends(said)
  await first.idle()
  await first.say('and again')
  await first.ends([...said, 'user: and again', 'assistant: I heard: and again.'])
  expect(await statuses(thread)).toEqual(['CANCELLED', 'COMPLETED', 'COMPLETED'])
})
