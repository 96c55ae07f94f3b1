import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from './browser.ts'
import { openStage, type Stage } from './stage.ts'

/** An empty page, reached by any name. */
const site = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' })
  response.end('<!doctype html><title>A page</title>')
})
let port = 0
let browser: Browser
let stage: Stage

beforeAll(async () => {
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  port = (site.address() as AddressInfo).port
  ;[browser, stage] = await Promise.all([openBrowser(['evil.test']), openStage()])
})
afterAll(async () => {
  await Promise.all([browser?.close(), stage?.close()])
  site.closeAllConnections()
  site.close()
})

/** Sends what a page may send without asking first, in every way there is, from a page at `origin`. */
async function post(origin: string, path: string): Promise<void> {
  const page = await browser.newPage()
  try {
    await page.goto(origin)
    const url = stage.url + path
    await page.evaluate(`fetch(${JSON.stringify(url)}, { method: 'POST', mode: 'no-cors' })`)
    await page.evaluate(`fetch(${JSON.stringify(url)}, { method: 'POST' }).catch(() => {})`)
    await page.evaluate(`navigator.sendBeacon(${JSON.stringify(url)})`)
    const form = `const form = document.createElement('form')
      form.method = 'post'
      form.action = ${JSON.stringify(url)}
      document.body.append(form)
      form.submit()`
    await Promise.all([page.waitForResponse(url), page.evaluate(`(() => { ${form} })()`)])
  } finally {
    await page.close()
  }
}

test('a page of another site cannot create a thread or stop a run in Chromium', async () => {
  await post(`http://evil.test:${port}`, '/chats')
  expect(await stage.threads()).toEqual([])

  const started = await fetch(`${stage.url}/chats/held/interactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user_message: 'sign ann' }),
  })
  const waits = [{ said: 'sign ann', status: 'WAITING_APPROVAL' }]
  await expect.poll(() => stage.runs('held')).toEqual(waits)
  await post(`http://evil.test:${port}`, '/copilotkit/agent/default/stop/held')
  await post(`http://evil.test:${port}`, '/copilotkit/threads/held/archive')
  expect(await stage.runs('held')).toEqual(waits)
  expect(await stage.threads()).toEqual(['held'])
  await started.body?.cancel()
})

test('a page of this machine may create threads in Chromium', async () => {
  const before = (await stage.threads()).length
  await post(`http://127.0.0.1:${port}`, '/chats')
  expect((await stage.threads()).length).toBeGreaterThan(before)
})
