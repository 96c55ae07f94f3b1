import { randomUUID } from 'node:crypto'
import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { type Flavour, openBrowser, openTabs, type Tab } from './browser.ts'
import { openStage, type Stage, servePage } from './stage.ts'

/** `options` are what a page takes in its address, beside the server and the thread. */
type Open = (flavour: Flavour, options?: Record<string, string>) => Promise<Tab>

/** One browser, one page server and one runtime for the stories of a file. */
export function theatre() {
  let browser: Browser
  let context: BrowserContext
  let pages: Awaited<ReturnType<typeof servePage>>
  let stage: Stage
  beforeAll(async () => {
    ;[browser, pages, stage] = await Promise.all([openBrowser(), servePage(), openStage()])
    context = await browser.newContext({ viewport: { width: 1000, height: 700 } })
    await (await context.newPage()).goto(pages.url) // keeps the process of the site alive
  })
  beforeEach(() => stage.revive())
  afterAll(async () => {
    await Promise.all([browser?.close(), pages?.close(), stage?.close()])
  })
  return {
    get stage() {
      return stage
    },
    /** A new thread, and a way to open tabs on it. */
    visit(): { thread: string; open: Open } {
      const thread = randomUUID()
      const open = openTabs(context)
      return {
        thread,
        open(flavour, options = {}) {
          const query = new URLSearchParams({
            runtime: `${stage.url}/copilotkit`,
            thread,
            ...options,
          })
          const olds: Partial<Record<Flavour, string>> = {
            old: 'old/index',
            'old-readme': 'old/readme',
          }
          const page = olds[flavour] ?? `page/${flavour}`
          return open(`${pages.url}/${page}.html?${query}`, flavour)
        },
      }
    },
  }
}
