import { describe, expect, test } from 'vitest'
import { theatre } from './theatre.ts'

const scene = theatre()
const signed = (guest: string) => scene.stage.guests().filter((one) => one === guest)

describe.each(['v2', 'v1'] as const)('an approval on a page of CopilotKit %s', (flavour) => {
  test('waits through a reload and a killed server, and is carried out once', async () => {
    const { thread, open } = scene.visit()
    const guest = `Ada-${flavour}`
    const tab = await open(flavour)
    await tab.say(`sign ${guest}`)
    const card = tab.card(`Sign the guest book for “${guest}”`)
    await card.waitFor()
    await tab.idle()
    await tab.screenshot(`${flavour}-approval`)
    await tab.reload()
    await card.waitFor()
    tab.expectTrouble()
    await scene.stage.kill()
    await scene.stage.start()
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'WAITING_APPROVAL' }])
    await tab.reload()
    await card.waitFor()
    expect(signed(guest)).toEqual([])
    await tab.button('Approve').click()
    const said = [`user: sign ${guest}`, `assistant: I heard: ${guest} is in the book.`]
    await tab.ends(said)
    expect(await card.count()).toBe(0)
    expect(signed(guest)).toEqual([guest])
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
    await tab.screenshot(`${flavour}-approved`)
    await tab.reload()
    await tab.ends(said)
    expect(await card.count()).toBe(0)
    expect(signed(guest)).toEqual([guest])
  })

  test('is answered at once, with other arguments', async () => {
    const { open } = scene.visit()
    const [asked, meant] = [`Bob-${flavour}`, `Grace-${flavour}`]
    const tab = await open(flavour)
    await tab.say(`sign ${asked}`)
    await tab.page.getByRole('textbox', { name: 'guest' }).fill(meant)
    await tab.screenshot(`${flavour}-approval-edited`)
    await tab.button('Approve with changes').click()
    await tab.ends([`user: sign ${asked}`, `assistant: I heard: ${meant} is in the book.`])
    expect([signed(asked), signed(meant)]).toEqual([[], [meant]])
    await tab.say('hello')
    await expect.poll(tab.transcript).toContain('assistant: I heard: hello.')
  })

  test('is rejected, the model is told why, and nothing is done', async () => {
    const { thread, open } = scene.visit()
    const guest = `Eve-${flavour}`
    const tab = await open(flavour)
    await tab.say(`sign ${guest}`)
    await tab.button('Reject').click()
    await tab.ends([
      `user: sign ${guest}`,
      'assistant: I heard: The user rejected this call: Not on this page.',
    ])
    expect(signed(guest)).toEqual([])
    expect(await scene.stage.runs(thread)).toMatchObject([{ status: 'COMPLETED' }])
  })

  test('is one question in all tabs: the late answer of another tab changes nothing', async () => {
    const { open } = scene.visit()
    const guest = `Joan-${flavour}`
    const said = [`user: sign ${guest}`, `assistant: I heard: ${guest} is in the book.`]
    const first = await open(flavour)
    await first.say(`sign ${guest}`)
    await first.card(/Joan/).waitFor()
    const second = await open(flavour)
    await second.card(/Joan/).waitFor()
    await first.button('Approve').click()
    await first.ends(said)
    await second.button('Reject').click()
    await second.ends(said)
    expect(await second.card(/Joan/).count()).toBe(0)
    expect(signed(guest)).toEqual([guest])
    const third = await open(flavour)
    await third.ends(said)
    expect(await third.card(/Joan/).count()).toBe(0)
  })
})

test('two approvals are answered one by one and carried out together', async () => {
  const { open } = scene.visit()
  const tab = await open('v2')
  await tab.say('sign Tim Tom')
  const [tim, tom] = [tab.card(/Tim/), tab.card(/Tom/)]
  await tim.waitFor()
  await tom.waitFor()
  await tim.getByRole('button', { name: 'Approve' }).click()
  await tim.getByText('You approved this.').waitFor()
  await tab.screenshot('v2-one-of-two-decided')
  expect(signed('Tim')).toEqual([])
  await tom.getByRole('button', { name: 'Reject' }).click()
  await tab.ends([
    'user: sign Tim Tom',
    'assistant: I heard: Tim is in the book, The user rejected this call: Not on this page.',
  ])
  expect([signed('Tim'), signed('Tom')]).toEqual([['Tim'], []])
})

test('the page that the README prints asks, and takes the answer', async () => {
  const guest = 'Reader'
  const { open } = scene.visit()
  const tab = await open('readme')
  await tab.say(`sign ${guest}`)
  await tab.page.getByText(`Sign the guest book for “${guest}”`).waitFor()
  await tab.screenshot('readme')
  await tab.button('Yes').click()
  await tab.ends([`user: sign ${guest}`, `assistant: I heard: ${guest} is in the book.`])
  expect(signed(guest)).toEqual([guest])
})
