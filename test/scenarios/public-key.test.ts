import { expect, test } from 'vitest'
import { raw } from '../support/raw.ts'
import { serve } from '../support/serve.ts'

const key = 'ck_pub_0123456789'
const env = { HANDRAIL_PUBLIC_API_KEY: key }
const header = 'x-copilotcloud-public-api-key'
const hello = '/copilotkit/graphql?query=%7Bhello%7D'

test('GET /copilotkit/graphql?query= needs HANDRAIL_PUBLIC_API_KEY', async () => {
  const server = await serve({ builtIns: false }, { env })
  const wrong: Record<string, string>[] = [{}, { [header]: 'other' }, { accept: 'text/html' }]
  for (const headers of wrong) {
    const response = await raw(server.url, { path: hello, headers })
    expect([response.status, response.text]).toEqual([401, expect.stringContaining(header)])
    expect(response.text).not.toContain('Hello World')
  }
  const { status, text } = await raw(server.url, { path: hello, headers: { [header]: key } })
  expect([status, text]).toEqual([200, expect.stringContaining('Hello World')])
  const page = await raw(server.url, {
    path: '/copilotkit/graphql',
    headers: { accept: 'text/html' },
  })
  expect(page.status).toBe(200) // GraphiQL itself shows no data
})

test('every CopilotKit route needs HANDRAIL_PUBLIC_API_KEY, and others do not', async () => {
  const server = await serve({ builtIns: false }, { env })
  const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, unknown>>
  }
  const workflow = /\/(chat|status|approval\/.*)$/
  let guarded = 0
  for (const [path, methods] of Object.entries(paths))
    for (const method of Object.keys(methods)) {
      const address = path.replace(/\{\w+\}/g, 'x')
      const ask = async (headers: Record<string, string>) => {
        const gone = new AbortController()
        const response = await fetch(server.url + address, {
          method: method.toUpperCase(),
          headers,
          signal: gone.signal,
        })
        gone.abort()
        return response.status
      }
      const name = `${method} ${path}`
      if (/^\/(api\/)?copilotkit(\/|$)/.test(path) && !workflow.test(path)) {
        guarded++
        expect([name, await ask({})]).toEqual([name, 401])
        expect([name, await ask({ [header]: `${key}x` })]).toEqual([name, 401])
        expect([name, await ask({ [header]: key })]).not.toEqual([name, 401])
      } else expect([name, await ask({})]).not.toEqual([name, 401])
    }
  expect(guarded).toBeGreaterThan(30)
})
