import { describe, expect, test } from 'vitest'
import type { Tab } from './browser.ts'
import { theatre } from './theatre.ts'

const scene = theatre()
const hello = ['user: hello', 'assistant: I heard: hello.']
const kinds = [
  ['a page', { name: 'free' }],
  ['a page locked to an agent', { name: 'locked', agent: 'assistant' }],
] as const

/** How often the agent painted this page since it was loaded, and how it looks. */
const painted = ({ page }: Tab) =>
  page.locator('body').evaluate(({ dataset, style }) => [dataset.painted, style.background])

/** How often the page asks the server to go on, from now on. */
function requestsOf({ page }: Tab): () => number {
  let count = 0
  page.on('request', (request) => {
    if (request.postData()?.includes('mutation generateCopilotResponse')) count += 1
  })
  return () => count
}

const statuses = async (thread: string) =>
  (await scene.stage.runs(thread)).map(({ status }) => status)

describe.each(kinds)('actions of %s of CopilotKit 1.10', (_, options) => {
  test('are run in the browser once, and the run goes on with their result', async () => {
    const { thread, open } = scene.visit()
    const tab = await open('old', options)
    const said = ['user: paint teal', 'assistant: I heard: the background is teal.']
    await tab.say('paint teal')
    await tab.ends(said)
    await tab.screenshot(`old-painted-${options.name}`)
    await tab.say('hello')
    await tab.ends([...said, ...hello])
    expect(await painted(tab)).toEqual(['1', 'teal'])
    expect(await statuses(thread)).toEqual(['COMPLETED', 'COMPLETED'])
  })

  test('may ask the person, and the run goes on with the answer', async () => {
    const { open } = scene.visit()
    const tab = await open('old', options)
    await tab.say('seat 12')
    await tab.button('Seat 12A').waitFor()
    await tab.screenshot(`old-seat-${options.name}`)
    await tab.button('Seat 12B').click()
    const said = ['user: seat 12', 'assistant: I heard: 12B.']
    await tab.ends(said)
    await tab.page.getByText('Chosen: 12B').waitFor()
    await tab.say('hello')
    await tab.ends([...said, ...hello])
  })

  test('that ask the person are passed over by the stop button', async () => {
    const { thread, open } = scene.visit()
    const tab = await open('old', options)
    await tab.say('seat 4')
    await tab.button('Seat 4A').waitFor()
    await tab.stop()
    await tab.idle()
    await tab.say('recall')
    await tab.ends([
      'user: seat 4',
      'user: recall',
      'assistant: I remember: Operation was aborted by the user.',
    ])
    expect(await statuses(thread)).toEqual(['CANCELLED', 'COMPLETED'])
  })

  test('that want no follow-up tell their result with the next message', async () => {
    const { thread, open } = scene.visit()
    const tab = await open('old', { ...options, extras: 'on' })
    await tab.say('dim')
    await tab.page.getByText('Dimmed 1 times').waitFor()
    await tab.idle()
    await tab.say('recall')
    await tab.ends(['user: dim', 'user: recall', 'assistant: I remember: dimmed.'])
    expect(await tab.page.getByText('Dimmed 1 times').count()).toBe(1)
    expect(await statuses(thread)).toEqual(['CANCELLED', 'COMPLETED'])
  })

  test.each(['paint teal', 'count'])(
    'are not run again when nothing is said after %s',
    async (what) => {
      const { thread, open } = scene.visit()
      const tab = await open('old', options)
      const requests = requestsOf(tab)
      await tab.say(`hush ${what}`)
      await expect.poll(() => statuses(thread)).toEqual(['COMPLETED'])
      await tab.page.waitForTimeout(300)
      expect(requests()).toBeLessThanOrEqual(2)
      expect((await painted(tab))[0]).toBe(what === 'count' ? undefined : '1')
      await tab.say('hello')
      await tab.ends([`user: hush ${what}`, ...hello])
    },
  )
})

test('an action of CopilotKit 1.10 runs after what the model says before it', async () => {
  const { open } = scene.visit()
  const tab = await open('old')
  await tab.say('announce teal')
  await tab.ends([
    'user: announce teal',
    'assistant: Here is some color.',
    'assistant: I heard: the background is teal.',
  ])
  expect(await painted(tab)).toEqual(['1', 'teal'])
})

test('a page of CopilotKit 1.10 shows what the tools of the server do', async () => {
  const { open } = scene.visit()
  const tab = await open('old', { extras: 'on' })
  await tab.say('count')
  await tab.ends(['user: count', 'assistant: I heard: all of them.'])
  await tab.page.getByText('Counting guests: complete, all of them').waitFor()
  await tab.screenshot('old-render')
})

test('what a page of CopilotKit 1.10 has to read and to suggest is used', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', { extras: 'on', suggestions: 'on' })
  await tab.button('Greet').click()
  await tab.ends(hello)
  await tab.button('Greet').waitFor()
  await tab.say('flower')
  await tab.ends([...hello, 'user: flower', 'assistant: I see a peony.'])
  await tab.button('Greet').waitFor()
  await tab.screenshot('old-suggestions')
  expect(await statuses(thread)).toEqual(['COMPLETED', 'COMPLETED'])
})

test('state is shared with an agent on CopilotKit 1.10, and changed from both sides', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', { agent: 'librarian' })
  const shelf = tab.page.getByRole('complementary', { name: 'Shelf' })
  const books = () => shelf.getByRole('listitem').allTextContents()
  await tab.button('Add a book').click()
  await tab.say(`buy Emma ${thread}`)
  await tab.page.getByText('Looking for Emma').waitFor()
  await tab.screenshot('old-state-working')
  scene.stage.open(thread)
  const said = [`user: buy Emma ${thread}`, 'assistant: On the shelf: Page 1, Emma.']
  await tab.ends(said)
  expect(await books()).toEqual(['Page 1', 'Emma'])
  await tab.button('Add a book').click()
  await tab.say('list')
  const listed = ['user: list', 'assistant: On the shelf: Page 1, Emma, Page 3.']
  said.push(...listed)
  await tab.ends(said)
  await tab.screenshot('old-state')
  await tab.reload()
  await tab.ends(said)
  expect(await books()).toEqual(['Page 1', 'Emma', 'Page 3'])
  await tab.say('list')
  await tab.ends([...said, ...listed])
})

test('a page of CopilotKit 1.10 calls an agent in mid-talk, and stays with it', async () => {
  const { open } = scene.visit()
  const tab = await open('old', { shelf: 'on' })
  await tab.say('hello')
  await tab.ends(hello)
  await tab.button('Add a book').click()
  await tab.button('Call the librarian').click()
  const listed = ['user: list', 'assistant: On the shelf: Page 1.']
  await tab.say('list')
  await tab.ends([...hello, ...listed])
  await tab.say('list')
  await tab.ends([...hello, ...listed, ...listed])
})
