import { describe, expect, test } from 'vitest'
import type { Tab } from './browser.ts'
import { theatre } from './theatre.ts'

const scene = theatre()
const signed = (guest: string) => scene.stage.guests().filter((one) => one === guest)
const kinds = [
  ['a page', {}],
  ['a page that is locked to an agent', { agent: 'assistant' }],
] as const

/** How often the agent painted this page since it was loaded, and how it looks. */
const painted = ({ page }: Tab) =>
  page.locator('body').evaluate(({ dataset, style }) => [dataset.painted, style.background])

describe.each(kinds)('actions of %s on CopilotKit 1.10', (_, options) => {
  const kind = 'agent' in options ? '-agent' : ''

  test('are run in the browser once, and the run goes on with their result', async () => {
    const { thread, open } = scene.visit()
    const tab = await open('old', options)
    const said = ['user: paint teal', 'assistant: I heard: the background is teal.']
    await tab.say('paint teal')
    await tab.ends(said)
    expect(await painted(tab)).toEqual(['1', 'teal'])
    await tab.screenshot(`old-painted${kind}`)
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
    await tab.say('hello')
    await tab.ends([...said, 'user: hello', 'assistant: I heard: hello.'])
    expect(await painted(tab)).toEqual(['1', 'teal'])
  })

  test('may ask the person, and the run goes on with the answer', async () => {
    const { thread, open } = scene.visit()
    const tab = await open('old', options)
    await tab.say('seat 12')
    await tab.button('Seat 12A').waitFor()
    await tab.screenshot(`old-seat${kind}`)
    await tab.button('Seat 12B').click()
    const said = ['user: seat 12', 'assistant: I heard: 12B.']
    await tab.ends(said)
    await tab.page.getByText('Chosen: 12B').waitFor()
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
    await tab.say('hello')
    await tab.ends([...said, 'user: hello', 'assistant: I heard: hello.'])
  })
})

describe.each(kinds)('an approval as an action of %s on CopilotKit 1.10', (_, options) => {
  const kind = 'agent' in options ? '-agent' : ''

  test('is given, and the tool runs once', async () => {
    const { thread, open } = scene.visit()
    const guest = `Ada${kind}`
    const tab = await open('old', { ...options, asks: 'action' })
    await tab.say(`sign ${guest}`)
    await tab.card(`Sign the guest book for ${guest}`).waitFor()
    await tab.screenshot(`old-approval${kind}`)
    expect(signed(guest)).toEqual([])
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'WAITING_APPROVAL' }])
    await tab.button('Approve').click()
    const said = [`user: sign ${guest}`, `assistant: I heard: ${guest} is in the book.`]
    await tab.ends(said)
    await tab.screenshot(`old-approved${kind}`)
    expect(signed(guest)).toEqual([guest])
    await tab.say('hello')
    await tab.ends([...said, 'user: hello', 'assistant: I heard: hello.'])
    expect(signed(guest)).toEqual([guest])
    expect(await scene.stage.runs(thread)).toMatchObject([
      { status: 'COMPLETED' },
      { status: 'COMPLETED' },
    ])
  })

  test('is given with other arguments', async () => {
    const { open } = scene.visit()
    const [asked, meant] = [`Bob${kind}`, `Grace${kind}`]
    const tab = await open('old', { ...options, asks: 'action' })
    await tab.say(`sign ${asked}`)
    await tab.page.getByRole('textbox', { name: 'guest' }).fill(meant)
    await tab.button('Approve with changes').click()
    await tab.ends([`user: sign ${asked}`, `assistant: I heard: ${meant} is in the book.`])
    expect([signed(asked), signed(meant)]).toEqual([[], [meant]])
  })

  test('is refused, the model is told why, and the tool does not run', async () => {
    const { open } = scene.visit()
    const guest = `Eve${kind}`
    const tab = await open('old', { ...options, asks: 'action' })
    await tab.say(`sign ${guest}`)
    await tab.button('Reject').click()
    await tab.ends([
      `user: sign ${guest}`,
      'assistant: I heard: The user rejected this call: Not on this page.',
    ])
    await tab.screenshot(`old-rejected${kind}`)
    expect(signed(guest)).toEqual([])
  })

  test('is asked for twice when two tools need it', async () => {
    const { open } = scene.visit()
    const [tim, tom] = [`Tim${kind}`, `Tom${kind}`]
    const tab = await open('old', { ...options, asks: 'action' })
    await tab.say(`sign ${tim} ${tom}`)
    await tab.card(`Sign the guest book for ${tim}`).getByText('Approve').click()
    await tab.card(`Sign the guest book for ${tom}`).getByText('Reject').click()
    await tab.ends([
      `user: sign ${tim} ${tom}`,
      `assistant: I heard: ${tim} is in the book, The user rejected this call: Not on this page.`,
    ])
    expect([signed(tim), signed(tom)]).toEqual([[tim], []])
  })
})

describe.each(kinds)('an approval as an interrupt of %s on CopilotKit 1.10', (_, options) => {
  const kind = 'agent' in options ? '-agent' : ''

  test('is given, and the tool runs once', async () => {
    const { thread, open } = scene.visit()
    const guest = `Mary${kind}`
    const tab = await open('old', { ...options, asks: 'interrupt' })
    await tab.say(`sign ${guest}`)
    await tab.card(`Sign the guest book for ${guest}`).waitFor()
    await tab.idle()
    await tab.screenshot(`old-interrupt${kind}`)
    expect(signed(guest)).toEqual([])
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'WAITING_APPROVAL' }])
    await tab.button('Approve').click()
    const said = [`user: sign ${guest}`, `assistant: I heard: ${guest} is in the book.`]
    await tab.ends(said)
    expect(await tab.card(/Mary/).count()).toBe(0)
    expect(signed(guest)).toEqual([guest])
    await tab.say('hello')
    await tab.ends([...said, 'user: hello', 'assistant: I heard: hello.'])
    expect(signed(guest)).toEqual([guest])
  })

  test('is refused, and the tool does not run', async () => {
    const { open } = scene.visit()
    const guest = `Mallory${kind}`
    const tab = await open('old', { ...options, asks: 'interrupt' })
    await tab.say(`sign ${guest}`)
    await tab.button('Reject').click()
    await tab.ends([
      `user: sign ${guest}`,
      'assistant: I heard: The user rejected this call: Not on this page.',
    ])
    expect(signed(guest)).toEqual([])
  })
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
  said.push('user: list', 'assistant: On the shelf: Page 1, Emma, Page 3.')
  await tab.ends(said)
  await tab.screenshot('old-state')
  expect(await books()).toEqual(['Page 1', 'Emma', 'Page 3'])
  await tab.reload()
  await tab.ends(said)
  expect(await books()).toEqual(['Page 1', 'Emma', 'Page 3'])
  await tab.say('list')
  await tab.ends([...said, 'user: list', 'assistant: On the shelf: Page 1, Emma, Page 3.'])
})
