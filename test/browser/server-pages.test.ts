import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from './browser.ts'
import { openStage, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage
/** A page that puts another one into a frame. */
const framing = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '/', 'http://page')
  response.writeHead(200, { 'content-type': 'text/html' })
  response.end(`<!doctype html><iframe src="${searchParams.get('page')}"></iframe>`)
})

beforeAll(async () => {
  await new Promise<void>((resolve) => framing.listen(0, '127.0.0.1', resolve))
  ;[browser, stage] = await Promise.all([openBrowser(), openStage()])
})
afterAll(async () => {
  await Promise.all([browser?.close(), stage?.close()])
  framing.closeAllConnections()
  framing.close()
})

test('GraphiQL works in Chromium under its content security policy', async () => {
  const page = await browser.newPage()
  const problems: string[] = []
  page.on('console', (line) => line.type() === 'error' && problems.push(line.text()))
  page.on('pageerror', (error) => problems.push(String(error)))
  await page.goto(`${stage.url}/copilotkit/graphql`)
  await page.locator('button.graphiql-tab-button', { hasText: 'Agents' }).click()
  const statuses: number[] = []
  page.on('response', (response) => {
    if (response.request().postData()?.includes('availableAgents')) statuses.push(response.status())
  })
  // After a change of the tab, GraphiQL still executes the operation of the other tab for some
  // 100 ms, and shows "Cannot infer operation Chat". Nothing on the page says when that has passed.
  await expect
    .poll(
      async () => {
        await page.locator('.graphiql-execute-button').click()
        return statuses[0]
      },
      { interval: 500 },
    )
    .toBe(200)
  const result = page.locator('.graphiql-response, .result-window').first()
  await expect.poll(() => result.textContent()).toContain('availableAgents')
  expect(problems).toEqual([])
  await page.close()
})

test.each(['/docs', '/copilotkit/graphql', '/chats'])('%s cannot be framed', async (path) => {
  const page = await browser.newPage()
  const { port } = framing.address() as AddressInfo
  const refused = page.waitForEvent('console', (line) => /frame/i.test(line.text()))
  await page.goto(`http://127.0.0.1:${port}/?page=${encodeURIComponent(stage.url + path)}`)
  expect((await refused).text()).toMatch(/frame-ancestors|X-Frame-Options/i)
  await page.close()
})
