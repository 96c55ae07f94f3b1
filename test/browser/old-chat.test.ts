import { expect, test } from 'vitest'
import { theatre } from './theatre.ts'

const scene = theatre()
const begun = 'assistant: Once upon a time'
const whole = 'assistant: Once upon a time there was a handrail.'
const locked = { agent: 'assistant' }

const statusOf = async (thread: string) => (await scene.stage.runs(thread)).at(-1)?.status
const patience = { timeout: 10_000, interval: 50 }

test.each([
  ['a page', {}],
  ['a page that is locked to an agent', locked],
])('%s on CopilotKit 1.10 chats, again and again', async (_, options) => {
  const { thread, open } = scene.visit()
  const tab = await open('old', options)
  const said: string[] = []
  for (const text of ['hello', 'and again', 'and once more']) {
    await tab.say(text)
    said.push(`user: ${text}`, `assistant: I heard: ${text}.`)
    await tab.ends(said)
  }
  await tab.screenshot(`old-chat${'agent' in options ? '-agent' : ''}`)
  expect(await scene.stage.runs(thread)).toEqual([
    { said: 'hello', status: 'COMPLETED' },
    { said: 'and again', status: 'COMPLETED' },
    { said: 'and once more', status: 'COMPLETED' },
  ])
})

test.each([
  ['a page', {}],
  ['a page that is locked to an agent', locked],
])('%s on CopilotKit 1.10 shows an answer while it is made', async (_, options) => {
  const { thread, open } = scene.visit()
  const tab = await open('old', options)
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  await tab.screenshot('old-streaming')
  expect(await statusOf(thread)).toBe('RUNNING')
  scene.stage.open(thread)
  await tab.ends([user, whole])
  expect(await statusOf(thread)).toBe('COMPLETED')
  await tab.say('hello')
  await tab.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
})

test('a reloaded page on CopilotKit 1.10 finds its thread, also in the next life of the server', async () => {
  const { open } = scene.visit()
  const said = ['user: hello', 'assistant: I heard: hello.']
  const tab = await open('old', locked)
  await tab.say('hello')
  await tab.ends(said)
  await tab.reload()
  await tab.ends(said)
  await scene.stage.kill()
  await scene.stage.start()
  await tab.reload()
  await tab.ends(said)
  await tab.say('and again')
  await tab.ends([...said, 'user: and again', 'assistant: I heard: and again.'])
})

test('a reload in mid-run on CopilotKit 1.10 stops nothing, and the next message brings it all', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', locked)
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  await tab.reload()
  await expect.poll(tab.transcript, patience).toContain(user)
  await tab.page.waitForTimeout(3_500) // longer than the server waits for a page to come back
  expect(await statusOf(thread)).toBe('RUNNING')
  scene.stage.open(thread)
  await expect.poll(() => statusOf(thread), patience).toBe('COMPLETED')
  await tab.say('hello')
  await tab.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
  await tab.screenshot('old-after-reload')
  await tab.reload()
  await tab.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
})

test('a server killed under a page on CopilotKit 1.10 goes on, and the next message brings it all', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', locked)
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  tab.expectTrouble()
  await scene.stage.kill()
  await tab.idle()
  await tab.screenshot('old-server-gone')
  scene.stage.open(thread)
  await scene.stage.start()
  await expect.poll(() => statusOf(thread), patience).toBe('COMPLETED')
  await tab.say('hello')
  await tab.ends([user, whole, 'user: hello', 'assistant: I heard: hello.'])
})

test.each([
  ['a page', {}],
  ['a page that is locked to an agent', locked],
])('the stop button of %s on CopilotKit 1.10 stops the run on the server', async (_, options) => {
  const { thread, open } = scene.visit()
  const tab = await open('old', options)
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  await tab.stop()
  await tab.idle()
  await tab.shows([user, begun])
  await tab.screenshot('old-stopped')
  await expect.poll(() => statusOf(thread), patience).toBe('CANCELLED')
  await tab.say('hello')
  await tab.ends([user, begun, 'user: hello', 'assistant: I heard: hello.'])
})

test('the next message on CopilotKit 1.10 stops a stopped run at once', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', locked)
  const user = `user: tell ${thread}`
  await tab.say(`tell ${thread}`)
  await tab.shows([user, begun])
  await tab.stop()
  await tab.idle()
  await tab.say('hello')
  await tab.ends([user, begun, 'user: hello', 'assistant: I heard: hello.'])
  expect(await scene.stage.runs(thread)).toMatchObject([
    { status: 'CANCELLED' },
    { status: 'COMPLETED' },
  ])
})

test.each([
  ['a page', {}],
  ['a page that is locked to an agent', locked],
])('%s on CopilotKit 1.10 shows what went wrong, and goes on', async (_, options) => {
  const { thread, open } = scene.visit()
  const tab = await open('old', { ...options, console: 'on' })
  tab.expectTrouble()
  await tab.say('fail now')
  await tab.page.getByRole('alert').getByText('The library is closed.').waitFor()
  await tab.idle()
  await tab.screenshot(`old-error${'agent' in options ? '-agent' : ''}`)
  expect(await statusOf(thread)).toBe('FAILED')
  await tab.button('Dismiss').first().click()
  await tab.say('hello')
  await tab.ends(['user: fail now', 'user: hello', 'assistant: I heard: hello.'])
})

test('an agent that is not there is named on a page of CopilotKit 1.10', async () => {
  const { open } = scene.visit()
  const tab = await open('old', { agent: 'nobody', console: 'on' })
  await tab.page
    .getByText(/nobody/)
    .first()
    .waitFor()
  await tab.screenshot('old-no-agent')
})

test('a thread is the same on CopilotKit 1.10 and on the current one', async () => {
  const { thread, open } = scene.visit()
  const old = await open('old', locked)
  await old.say('hello')
  const said = ['user: hello', 'assistant: I heard: hello.']
  await old.ends(said)
  const current = await open('v2')
  await current.ends(said)
  await current.say('from here')
  said.push('user: from here', 'assistant: I heard: from here.')
  await current.ends(said)
  await old.say('from there') // it never saw what was said on the other page
  said.push('user: from there', 'assistant: I heard: from there.')
  await old.ends(said)
  await old.screenshot('old-shared-thread')
  await current.reload()
  await current.ends(said)
  await current.say(`tell ${thread}`)
  await current.shows([...said, `user: tell ${thread}`, begun])
  await old.reload()
  scene.stage.open(thread)
  said.push(`user: tell ${thread}`, whole)
  await current.ends(said)
  await old.reload()
  await old.ends(said)
})
