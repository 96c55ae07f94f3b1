import { describe, expect, test } from 'vitest'
import { theatre } from './theatre.ts'

const scene = theatre()
const hello = ['user: hello', 'assistant: I heard: hello.']
const locked = { agent: 'assistant' }
const rejected = 'The user rejected this call: Not on this page'
const signed = (guest: string) => scene.stage.guests().filter((one) => one === guest)
const statuses = async (thread: string) =>
  (await scene.stage.runs(thread)).map(({ status }) => status)

/** The page offers `approveAction`, or it does not and is interrupted. */
const kinds: [string, Record<'name' | 'asks', string>][] = [
  ['an action of a page', { name: 'action', asks: 'action' }],
  [
    'an interrupt of a page locked to an agent',
    { name: 'interrupt-locked', asks: 'interrupt', ...locked },
  ],
  ['an interrupt of a page', { name: 'interrupt', asks: 'interrupt' }],
  ['an action of a page locked to an agent', { name: 'action-locked', asks: 'action', ...locked }],
]

describe.each(kinds)('an approval as %s of CopilotKit 1.10', (_, options) => {
  const { name } = options

  test('is given in the next life of the server, and the tool runs once', async () => {
    const { thread, open } = scene.visit()
    const guest = `Ada-${name}`
    const tab = await open('old', options)
    await tab.say(`sign ${guest}`)
    const card = tab.card(`Sign the guest book for “${guest}”`)
    await card.waitFor()
    await tab.screenshot(`old-approval-${name}`)
    await scene.stage.kill()
    await scene.stage.start()
    expect(await statuses(thread)).toEqual(['WAITING_APPROVAL'])
    expect(signed(guest)).toEqual([])
    await tab.button('Approve').click()
    const said = [`user: sign ${guest}`, `assistant: I heard: ${guest} is in the book.`]
    await tab.ends(said)
    expect(await card.count()).toBe(0)
    await tab.screenshot(`old-approved-${name}`)
    await tab.say('hello')
    await tab.ends([...said, ...hello])
    expect(signed(guest)).toEqual([guest])
    expect(await statuses(thread)).toEqual(['COMPLETED', 'COMPLETED'])
  })

  test('stands beside an action of the page, which runs once', async () => {
    const { open } = scene.visit()
    const guest = `Both-${name}`
    const tab = await open('old', options)
    await tab.say(`both teal ${guest}`)
    await tab.card(`Sign the guest book for “${guest}”`).waitFor()
    await tab.page.waitForTimeout(300)
    await tab.button('Approve').click()
    await tab.ends([
      `user: both teal ${guest}`,
      `assistant: I heard: the background is teal, ${guest} is in the book.`,
    ])
    expect(await tab.page.locator('body').getAttribute('data-painted')).toBe('1')
    expect(signed(guest)).toEqual([guest])
  })
})

describe.each(kinds.slice(0, 2))('an approval as %s of CopilotKit 1.10', (_, options) => {
  const { name } = options

  test('is given with other arguments', async () => {
    const { open } = scene.visit()
    const [asked, meant] = [`Bob-${name}`, `Grace-${name}`]
    const tab = await open('old', options)
    await tab.say(`sign ${asked}`)
    await tab.page.getByRole('textbox', { name: 'guest' }).fill(meant)
    await tab.button('Approve with changes').click()
    await tab.ends([`user: sign ${asked}`, `assistant: I heard: ${meant} is in the book.`])
    expect([signed(asked), signed(meant)]).toEqual([[], [meant]])
  })

  test('is asked for twice when two calls need it, and can be refused', async () => {
    const { open } = scene.visit()
    const [tim, tom] = [`Tim-${name}`, `Tom-${name}`]
    const tab = await open('old', options)
    await tab.say(`sign ${tim} ${tom}`)
    await tab.card(`Sign the guest book for “${tim}”`).getByText('Approve').click()
    await tab.card(`Sign the guest book for “${tom}”`).getByText('Reject').click()
    await tab.ends([
      `user: sign ${tim} ${tom}`,
      `assistant: I heard: ${tim} is in the book, ${rejected}.`,
    ])
    expect([signed(tim), signed(tom)]).toEqual([[tim], []])
  })

  test('that was given on another page is given: a late answer changes nothing', async () => {
    const { open } = scene.visit()
    const guest = `Joan-${name}`
    const tab = await open('old', options)
    await tab.say(`sign ${guest}`)
    await tab.card(/Joan/).waitFor()
    const other = await open('v2')
    await other.button('Approve').click()
    const said = [`user: sign ${guest}`, `assistant: I heard: ${guest} is in the book.`]
    await other.ends(said)
    await tab.button('Reject').click()
    await tab.ends(said)
    await tab.say('hello')
    await tab.ends([...said, ...hello])
    expect(signed(guest)).toEqual([guest])
  })
})

test.each(['action', 'interrupt'])(
  'a message after a reload of CopilotKit 1.10 is shown the %s again, and answered after it',
  async (asks) => {
    const { thread, open } = scene.visit()
    const guest = `Ruth-${asks}`
    const tab = await open('old', { asks, agent: 'assistant' })
    await tab.say(`sign ${guest}`)
    await tab.card(/Ruth/).waitFor()
    await tab.reload()
    await tab.ends([`user: sign ${guest}`])
    await tab.say('hello')
    await tab.card(/Ruth/).waitFor()
    await tab.screenshot(`old-asked-again-${asks}`)
    await tab.button('Approve').click()
    await tab.ends([
      `user: sign ${guest}`,
      `assistant: I heard: ${guest} is in the book.`,
      ...hello,
    ])
    expect(signed(guest)).toEqual([guest])
    expect(await statuses(thread)).toEqual(['COMPLETED', 'COMPLETED'])
  },
)

test('the stop button of CopilotKit 1.10 beside a card approves nothing', async () => {
  const { thread, open } = scene.visit()
  const tab = await open('old', { asks: 'action' })
  await tab.say('sign Mallory')
  await tab.card(/Mallory/).waitFor()
  await tab.stop()
  await tab.idle()
  await tab.say('hello')
  await tab.ends(['user: sign Mallory', ...hello])
  expect(signed('Mallory')).toEqual([])
  expect(await statuses(thread)).toEqual(['CANCELLED', 'COMPLETED'])
})

test('the page of CopilotKit 1.10 that the README prints asks, and takes the answer', async () => {
  const guest = 'Old-Reader'
  const { open } = scene.visit()
  const tab = await open('old-readme', { agent: 'default' })
  await tab.say(`sign ${guest}`)
  await tab.page.getByText(`Sign the guest book for “${guest}”`).waitFor()
  await tab.screenshot('old-readme')
  await tab.button('Yes').click()
  await tab.ends([`user: sign ${guest}`, `assistant: I heard: ${guest} is in the book.`])
  expect(signed(guest)).toEqual([guest])
})
