import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'
import { violations } from '../browser/axe.ts'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Locator,
  openBrowser,
  type Page,
} from '../browser/browser.ts'
import { openStage, type Stage } from '../browser/stage.ts'
import { freePort, type PageServer, startPage } from './page-server.ts'

const config = fileURLToPath(new URL('./handrail.config.mjs', import.meta.url))
const screens = fileURLToPath(new URL('../browser/screens', import.meta.url))
const patience = { timeout: 20_000, interval: 50 }

/** One browser, the page and its runtime for the stories of a file. */
export function theatre(env: Record<string, string> = {}) {
  let browser: Browser
  let context: BrowserContext
  let stage: Stage
  let page: PageServer
  beforeAll(async () => {
    const PORT = String(await freePort()) // it must get the same again after it was killed
    ;[browser, stage] = await Promise.all([openBrowser(), openStage(config, { PORT, ...env })])
    page = await startPage(stage.url)
    context = await browser.newContext({ viewport: wide })
    await (await context.newPage()).goto(`${page.url}/icon.svg`) // keeps the process of the site alive
  })
  beforeEach(() => stage.revive())
  afterAll(async () => {
    await Promise.all([browser?.close(), page?.close(), stage?.close()])
  })
  return {
    get stage() {
      return stage
    },
    get url() {
      return page.url
    },
    /** A chat of its own, and a way to open tabs on it. */
    visit() {
      const thread = randomUUID()
      const open = async (options?: BrowserContextOptions, path = `/t/${thread}`) => {
        const own = options && (await browser.newContext({ viewport: wide, ...options }))
        const tab = await (own ?? context).newPage()
        onTestFinished(() => (own ?? tab).close())
        return await openTab(tab, page.url + path, env.HANDRAIL_API_KEYS === undefined)
      }
      return { thread, open }
    },
  }
}

const wide = { width: 1_100, height: 740 }

export type Tab = Awaited<ReturnType<typeof openTab>>

/** The page as its reader has it. Whatever the story: nothing leaves the machine, nothing breaks. */
async function openTab(page: Page, address: string, known: boolean) {
  const surprises: string[] = []
  let calm = known // else the browser tells of the answer that asks for a key, as soon as there is one
  const note = (what: string) => calm && surprises.push(what)
  await page.route('**/*', (route) => {
    const { hostname, protocol } = new URL(route.request().url())
    if (hostname !== '127.0.0.1' && protocol.startsWith('http'))
      surprises.push(`left the machine: ${route.request().url()}`)
    return route.continue()
  })
  page.on('pageerror', (error) => note(`page error: ${error.stack}`))
  page.on('console', (line) => line.type() === 'error' && note(`console: ${line.text()}`))
  onTestFinished(() => expect(surprises.join('\n')).toBe(''))
  const button = (name: string | RegExp) =>
    page.getByRole('button', { name, exact: typeof name === 'string' })
  const input = page.getByRole('textbox', { name: 'Your message', exact: true })
  const phase = () => page.locator('.connection').getAttribute('data-phase')
  const live = async () => await expect.poll(phase, patience).toBe('live')
  const tab = {
    page,
    input,
    button,
    phase,
    live,
    async say(text: string) {
      await input.fill(text)
      await input.press('Enter')
    },
    /** Nothing runs, and what is shown is what is. */
    async idle() {
      await button('Send').waitFor({ timeout: patience.timeout })
      await live()
    },
    /** What was said, in order: `user: ...`, `assistant: ...`. */
    transcript: () => page.locator('.said .bubble, .answer .prose').evaluateAll(read),
    async shows(...expected: string[]) {
      await expect.poll(tab.transcript, patience).toEqual(expected)
    },
    /** The last that was said comes to have these words in it. */
    async ends(words: string) {
      await expect.poll(async () => (await tab.transcript()).at(-1), patience).toContain(words)
    },
    /** What is told to people who listen to the page. */
    async hears(sentence: string | RegExp) {
      await expect
        .poll(async () => (await page.getByRole('status').allTextContents()).join(' '), patience)
        .toMatch(sentence)
    },
    async reload() {
      await page.reload()
      await live()
    },
    expectTrouble() {
      calm = false
    },
    async screenshot(name: string) {
      await page.screenshot({ path: join(screens, `web-${name}.png`), animations: 'disabled' })
    },
    /** axe finds nothing serious; a screenshot of this state is kept. */
    async looksRight(name: string) {
      await tab.screenshot(name)
      expect(await violations(page), name).toEqual([])
    },
  }
  await page.goto(address)
  if (known) await live()
  return tab
}

interface Shown {
  textContent: string | null
  className: string
}

/** Runs in the page. */
function read(elements: Shown[]): string[] {
  return elements.map(
    ({ className, textContent }) =>
      `${className.includes('bubble') ? 'user' : 'assistant'}: ${textContent?.trim() ?? ''}`,
  )
}

export const visible = (locator: Locator) => locator.waitFor({ timeout: patience.timeout })
