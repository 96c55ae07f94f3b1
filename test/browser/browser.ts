import { existsSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type BrowserContext,
  chromium,
  type Locator,
  type Page,
  type Request,
} from 'playwright-core'
import { expect, onTestFailed, onTestFinished } from 'vitest'

export type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'

const screens = fileURLToPath(new URL('./screens', import.meta.url))

/** The Chromium of the system, cut off from everything but this machine. `names` are further names of this machine. */
export async function openBrowser(names: readonly string[] = []) {
  mkdirSync(screens, { recursive: true })
  return await chromium.launch({
    executablePath: onPath('chromium'),
    chromiumSandbox: false, // it refuses to work for root
    args: [
      '--disable-dev-shm-usage',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--process-per-site', // a page is compiled once and not in every tab
      `--host-resolver-rules=${[
        ...names.map((name) => `MAP ${name} 127.0.0.1`),
        'MAP * ~NOTFOUND',
        'EXCLUDE 127.0.0.1',
      ].join(', ')}`,
    ],
  })
}

function onPath(command: string): string {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const found = folders.map((folder) => join(folder, command)).find((path) => existsSync(path))
  if (found === undefined) throw new Error(`There is no ${command} on the PATH.`)
  return found
}

/** A page with a chat, seen as its user sees it; the same for all of CopilotKit's interfaces. */
export interface Tab {
  page: Page
  say(text: string): Promise<void>
  /** Waits until the chat takes the next message and nothing turns any more. */
  idle(): Promise<void>
  stop(): Promise<void>
  reload(): Promise<void>
  /** Everything that was said, in order: `user: ...`, `assistant: ...`. */
  transcript(): Promise<string[]>
  /** Waits until the transcript is this. */
  shows(expected: string[]): Promise<void>
  /** Waits until the transcript is this, the chat is idle, and the transcript still is this. */
  ends(expected: string[]): Promise<void>
  card(name: string | RegExp): Locator
  button(name: string): Locator
  screenshot(name: string): Promise<void>
  /** The server is about to be killed: until the next reload failed requests are no surprise. */
  expectTrouble(): void
}

/** `old` is the last client that speaks GraphQL. */
export type Flavour = 'v1' | 'v2' | 'readme' | 'old' | 'old-readme'

/** Where the two generations of the client differ. */
interface Client {
  input(page: Page): Locator
  /** While a run is live it is the stop button. */
  send(page: Page): Locator
  /** Whether something turns. */
  busy(page: Page): Promise<boolean>
  /** Whether this is what brings a loaded page its thread. */
  connects(request: Request): boolean
}

const current: Client = {
  input: (page) => page.getByTestId('copilot-chat-textarea'),
  send: (page) => page.getByTestId('copilot-send-button'),
  busy: async (page) => (await page.getByTestId('copilot-loading-cursor').count()) > 0,
  connects: (request) => request.url().endsWith('/agent/default/connect'),
}

const old: Client = {
  input: (page) => page.locator('.copilotKitInput textarea'),
  send: (page) => page.locator('.copilotKitInput button[data-test-id]'),
  busy: async (page) =>
    (await page.locator('[data-test-id="copilot-chat-request-in-progress"]').count()) > 0,
  connects(request) {
    const locked = new URL(request.frame().url()).searchParams.has('agent')
    const operation = locked ? 'loadAgentState' : 'availableAgents'
    return request.method() === 'POST' && request.postData()?.includes(operation) === true
  },
}

/** A way to open tabs for one test, closed with it. Whatever the story, no request leaves the
 *  machine and no tab reports an error that the story did not announce. */
export function openTabs(context: BrowserContext) {
  const surprises: string[] = []
  const pages: Page[] = []
  const requests: string[] = []
  onTestFailed(() => console.log(`What the tabs asked for:\n${requests.join('\n')}`))
  onTestFinished(async () => {
    for (const page of pages) await page.close()
    expect(surprises).toEqual([])
  })
  return async (address: string, flavour: Flavour): Promise<Tab> => {
    const client = flavour.startsWith('old') ? old : current
    const page = await context.newPage()
    pages.push(page)
    let calm = true
    const note = (what: string) => {
      if (calm) surprises.push(what)
    }
    const stays = (url: string) => {
      const { hostname, protocol } = new URL(url)
      const local = hostname === '127.0.0.1' || protocol === 'data:' || protocol === 'blob:'
      if (!local) surprises.push(`left the machine: ${url}`)
    }
    page.on('request', (request) => stays(request.url()))
    page.on('requestfinished', (request) => requests.push(told(request)))
    page.on('requestfailed', (request) => requests.push(told(request)))
    page.on('websocket', (socket) => stays(socket.url()))
    page.on('pageerror', (error) => note(`page error: ${error.stack}`))
    page.on('console', (line) => line.type() === 'error' && note(`console: ${line.text()}`))
    page.on('requestfailed', (request) => {
      // A reload takes streams along; that is no failure of anybody.
      const reason = request.failure()?.errorText
      if (reason !== 'net::ERR_ABORTED') note(`${request.url()}: ${reason}`)
    })
    await connected(page, client, () => page.goto(address))
    return tabOf(page, client, (expected) => {
      calm = !expected
    })
  }
}

/** A request in a line: when it was sent, what it was, and how it ended. */
function told(request: Request): string {
  const { startTime, responseEnd } = request.timing()
  const end = request.failure()?.errorText ?? `${Math.round(responseEnd)} ms`
  const body = request.postData()?.slice(0, 2000) ?? ''
  return `${new Date(startTime).toISOString()} ${request.method()} ${request.url()} ${end} ${body}`
}

/** Does what loads the page, and waits until the page has asked the server for its thread. */
async function connected(page: Page, client: Client, load: () => Promise<unknown>) {
  const thread = page.waitForResponse((response) => client.connects(response.request()))
  await Promise.all([thread, load()])
}

function tabOf(page: Page, client: Client, trouble: (expected: boolean) => void): Tab {
  const input = client.input(page)
  const send = client.send(page)
  const transcript = () => page.locator('.copilotKitMessage').evaluateAll(read)
  const idle = async () => {
    await expect.poll(() => input.inputValue(), patience).toBe('')
    await expect.poll(() => send.isDisabled(), patience).toBe(true)
    await expect.poll(() => client.busy(page), patience).toBe(false)
  }
  const shows = async (expected: string[]) => {
    await expect.poll(transcript, patience).toEqual(expected)
  }
  return {
    page,
    idle,
    transcript,
    shows,
    expectTrouble: () => trouble(true),
    async say(text) {
      await input.fill(text)
      await input.press('Enter')
    },
    async stop() {
      await expect.poll(() => send.isEnabled(), patience).toBe(true)
      await send.click()
    },
    async reload() {
      trouble(false)
      await connected(page, client, () => page.reload())
    },
    async ends(expected) {
      await shows(expected)
      await idle()
      expect(await transcript()).toEqual(expected)
    },
    card: (name) => page.getByRole('region', { name }),
    button: (name) => page.getByRole('button', { name, exact: true }),
    async screenshot(name) {
      await page.screenshot({ path: join(screens, `${name}.png`), animations: 'disabled' })
    },
  }
}

const patience = { timeout: 20_000, interval: 30 }

/** The part of an element that is looked at; this file knows no DOM otherwise. */
interface Shown {
  textContent: string | null
  classList: { contains(name: string): boolean }
  querySelector(selector: string): Shown | null
}

/** Runs in the page. All of CopilotKit's interfaces mark messages with the same classes. */
function read(messages: Shown[]): string[] {
  return messages.flatMap((message) => {
    const mine = message.classList.contains('copilotKitUserMessage')
    const body = message.querySelector('.copilotKitMarkdown, .cpk\\:prose') ?? message
    const text = body.textContent?.trim() ?? ''
    return text === '' ? [] : [`${mine ? 'user' : 'assistant'}: ${text}`]
  })
}
