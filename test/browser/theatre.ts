import { randomUUID } from 'node:crypto'
import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { type Flavour, openBrowser, openTabs, type Tab } from './browser.ts'
import { openStage, type Stage, servePage } from './stage.ts'

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
  afterAll(async () => {
    await Promise.all([browser?.close(), pages?.close(), stage?.close()])
  })
  return {
    get stage() {
      return stage
    },
    /** A new thread, and a way to open tabs on it. */
    visit(): { thread: string; open(flavour: Flavour): Promise<Tab> } {
      const thread = randomUUID()
      const query = new URLSearchParams({ runtime: `${stage.url}/copilotkit`, thread })
      const open = openTabs(context)
      return { thread, open: (flavour) => open(`${pages.url}/${flavour}.html?${query}`) }
    },
  }
}
