import { randomUUID } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { type Flavour, openBrowser, openTabs, type Tab } from './browser.ts'
import { openStage, type Stage, servePage } from './stage.ts'

/** One browser, one page server and one runtime for the stories of a file. */
export function theatre() {
  let browser: Browser
  let pages: Awaited<ReturnType<typeof servePage>>
  let stage: Stage
  beforeAll(async () => {
    ;[browser, pages, stage] = await Promise.all([openBrowser(), servePage(), openStage()])
  })
  afterAll(async () => {
    await Promise.all([browser?.close(), pages?.close(), stage?.close()])
  })
  return {
    get stage() {
      return stage
    },
    /** A new thread, a fresh browser profile, and a way to open tabs on it. */
    async visit(): Promise<{ thread: string; open: (flavour: Flavour) => Promise<Tab> }> {
      const thread = randomUUID()
      const context = await browser.newContext({ viewport: { width: 1000, height: 700 } })
      const runtime = `${stage.url}/copilotkit`
      const open = await openTabs(
        context,
        (flavour, id) =>
          `${pages.url}/${flavour}.html?${new URLSearchParams({ runtime, thread: id })}`,
      )
      return { thread, open: (flavour) => open(flavour, thread) }
    },
  }
}
