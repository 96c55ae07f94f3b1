import { expect, test } from 'vitest'
import { theatre, visible } from './theatre.ts'

const scene = theatre()

interface Box {
  scrollTop: number
  scrollHeight: number
  clientHeight: number
}

test('on a phone the list is a drawer, and everything fits', async () => {
  const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }
  const { open } = scene.visit()
  const tab = await open(phone)
  await tab.say('show me')
  await tab.idle()
  await tab.looksRight('phone')
  const wider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
  expect(await tab.page.evaluate(wider)).toBe(false)
  await tab.button('Show the list of chats').click()
  const drawer = tab.page.getByRole('dialog', { name: 'Chats' })
  await visible(drawer.getByRole('link', { name: 'show me' }))
  await tab.looksRight('phone-drawer')
  await tab.page.keyboard.press('Escape')
  await expect.poll(() => drawer.count()).toBe(0)
  await tab.button('Show the list of chats').click()
  await drawer.getByRole('link', { name: 'New chat' }).click()
  await visible(tab.page.getByRole('heading', { name: 'What shall we do?' }))
  await expect.poll(() => drawer.count()).toBe(0)
})

test('notes, references, lists to do and wide tables are laid out, also on a phone; odd links are words', async () => {
  const { open } = scene.visit()
  const tab = await open({ viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true })
  await tab.say('odd things')
  await tab.idle()
  const link = (name: string) => tab.page.locator('.prose').getByRole('link', { name })
  expect(await link('the docs').getAttribute('href')).toBe('https://example.com/docs')
  await visible(tab.page.getByText('What the note says.'))
  const note = (await link('1').first().getAttribute('href'))?.slice(1)
  expect(await tab.page.locator(`[id="${note}"]`).count()).toBe(1)
  for (const name of ['a script', 'a place']) {
    await visible(tab.page.getByText(name))
    expect(await link(name).count()).toBe(0)
  }
  await visible(tab.page.getByRole('checkbox', { name: 'Not done' }))
  const cell = await tab.page.getByRole('cell', { name: 'allowed' }).boundingBox()
  expect(cell?.height).toBeLessThan(100)
  expect(cell?.width).toBeGreaterThan(60)
  const wider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
  expect(await tab.page.evaluate(wider)).toBe(false)
  const right = await tab.page.evaluate(`(() => {
    const words = [...document.querySelectorAll('.prose > p')].at(-1)
    const range = document.createRange()
    range.selectNodeContents(words)
    return words.getBoundingClientRect().right - range.getBoundingClientRect().right
  })()`)
  expect(right).toBeLessThan(5)
  await tab.looksRight('odd-markdown')
})

test('a server without the account analysis offers none, and says so at its address', async () => {
  const { thread, open } = scene.visit()
  const tab = await open()
  expect(await tab.page.getByRole('link', { name: 'Account analysis' }).count()).toBe(0)
  for (const path of ['/analysis', `/analysis/${thread}`]) {
    await tab.page.goto(scene.url + path)
    await visible(tab.page.getByRole('heading', { name: 'This server has no account analysis' }))
  }
  await tab.looksRight('analysis-none')
})

test('a small window has room for the chat, however much there is to say and to write', async () => {
  const { open } = scene.visit()
  const tab = await open({ viewport: { width: 360, height: 480 } })
  await tab.page.evaluate(`Storage.prototype.setItem = () => {
    throw new DOMException('It is full.', 'QuotaExceededError') // a draft can be too long to be kept
  }`)
  await tab.say(`pay ${'verylongname'.repeat(20)} 5`)
  await visible(tab.button('Reject'))
  await tab.input.fill('one line\n'.repeat(40))
  await visible(tab.page.getByText(/^This chat waits for a decision: Pay 5 .*…$/))
  const box = await tab.page.locator('.composer').boundingBox()
  expect(box?.height).toBeLessThanOrEqual(0.6 * 480 + 1)
  const wider = `[...document.querySelectorAll('html, .composer, .blocked')]
    .filter((one) => one.scrollWidth > one.clientWidth).map(({ className }) => className)`
  expect(await tab.page.evaluate(wider)).toEqual([])
  const send = await tab.button('Send').boundingBox()
  expect(send && send.y + send.height).toBeLessThan(480)
  await tab.looksRight('small-window')
})

test('in the dark it is dark, and as easy to read', async () => {
  const { thread, open } = scene.visit()
  const tab = await open({ colorScheme: 'dark' })
  await tab.say('show me')
  await tab.idle()
  await tab.looksRight('dark')
  await tab.say(`Write a file named ${thread}.txt with the text hello`)
  await visible(tab.button(/^Write /))
  await tab.looksRight('dark-question')
  await tab.button('Stop here').click()
  await visible(tab.page.getByText('Stopped. What was said is kept.'))
  await tab.say('Fail')
  await visible(tab.button('Try again'))
  await tab.looksRight('dark-failed')
  const background = await tab.page.evaluate('getComputedStyle(document.body).backgroundColor')
  expect(background).toBe('rgb(22, 24, 26)')
})

test('with the keyboard alone: skip, write, send, open a tool, stop', async () => {
  const { thread, open } = scene.visit()
  const tab = await open({ reducedMotion: 'reduce' })
  const { keyboard } = tab.page
  await tab.page.getByRole('link', { name: 'Skip to the chat' }).focus()
  await tab.screenshot('skip-link')
  await keyboard.press('Enter')
  expect(await tab.page.evaluate('document.activeElement.id')).toBe('main')
  await tab.input.focus()
  await keyboard.type(`print ${thread}`)
  await keyboard.press('Enter')
  const tool = tab.page.locator('.tool-call')
  await visible(tool.getByText('running'))
  await tool.locator('summary').focus()
  await keyboard.press('Enter')
  await visible(tool.getByText('second line'))
  await tab.button('Stop').focus()
  await keyboard.press('Enter')
  await tab.idle()
  await visible(tab.page.getByText('Stopped. What was said is kept.'))
})

test('who says something sees it, wherever they read; the end is followed again once it is reached', async () => {
  const { open } = scene.visit()
  const tab = await open()
  for (let n = 0; n < 3; n++) {
    await tab.say('show me')
    await tab.idle()
  }
  const scroller = tab.page.getByRole('region', { name: 'Messages' })
  const gap = () =>
    scroller.evaluate((one: Box) => one.scrollHeight - one.scrollTop - one.clientHeight)
  const arrow = tab.button('Go to the latest message')
  const up = async () => {
    await scroller.evaluate((one: Box) => {
      one.scrollTop = 0
    })
    await visible(arrow)
  }
  await up()
  await tab.screenshot('to-end')
  await tab.say('answer here')
  await tab.idle()
  await expect.poll(gap).toBeLessThan(5)
  await up()
  await scroller.evaluate((one: Box) => {
    one.scrollTop = one.scrollHeight
  })
  await expect.poll(() => arrow.count()).toBe(0)
  await fetch(`${scene.stage.url}/chats/${tab.page.url().split('/').at(-1)}/interactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user_message: 'show me' }),
  }).then((response) => response.text())
  await expect.poll(async () => (await tab.transcript()).length, { timeout: 10_000 }).toBe(10)
  await expect.poll(gap).toBeLessThan(5)
})

test('another version comes where the one before it was, and the focus stays on the switch', async () => {
  const { open } = scene.visit()
  const tab = await open()
  await tab.say('answer one')
  await tab.idle()
  for (let n = 0; n < 2; n++) {
    await tab.say('show me')
    await tab.idle()
  }
  await tab.page.locator('.bubble').first().hover()
  await tab.button('Edit your message').first().click()
  const box = tab.page.getByRole('textbox', { name: 'Your message, to be changed' })
  await box.fill('show me')
  await box.press('Enter')
  await visible(tab.page.getByText('2 of 2'))
  await tab.idle()
  const switches = tab.page.locator('.branches')
  const top = async () => (await switches.boundingBox())?.y ?? 0
  for (const [name, place] of [
    ['Show the version before', '1 of 2'],
    ['Show the next version', '2 of 2'],
  ] as const) {
    await tab.button(name).focus()
    const before = await top()
    await tab.page.keyboard.press('Enter')
    await visible(switches.getByText(place))
    await tab.live()
    await expect.poll(top).toBeCloseTo(before, -1)
    const focused = 'document.activeElement?.closest(".branches") !== null'
    await expect.poll(() => tab.page.evaluate(focused)).toBe(true)
  }
})

test('what is read does not jump while an answer is written', async () => {
  const { open } = scene.visit()
  const tab = await open({})
  await tab.say('answer one')
  await tab.idle()
  await tab.page.evaluate(`
    window.shifted = 0
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value
    }).observe({ type: 'layout-shift' })
  `)
  await tab.button('Copy the answer').hover() // the pointer over what could move
  await tab.say('Be slow')
  await tab.idle()
  const shifted = (await tab.page.evaluate('window.shifted')) as number
  console.log(`layout shift while an answer is written: ${shifted.toFixed(4)}`)
  expect(shifted).toBeLessThan(0.02)
})
