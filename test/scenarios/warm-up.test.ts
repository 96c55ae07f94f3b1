import { randomUUID } from 'node:crypto'
import { Session } from 'node:inspector/promises'
import { expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { generate } from '../support/graphql.ts'
import { serve } from '../support/serve.ts'

/** Records the addresses of modules that this process loads from now on. */
async function loadedModules() {
  const session = new Session()
  session.connect()
  const urls: string[] = []
  session.on('Debugger.scriptParsed', ({ params }) => {
    if (/^(file:|\/)/.test(params.url)) urls.push(params.url)
  })
  await session.post('Debugger.enable')
  urls.length = 0 // the modules that were loaded before
  return { urls, stop: () => session.disconnect() }
}

test('after the warm-up, the first GraphQL request and the first request for GraphiQL load no module', async () => {
  const one = await serve({ model: scriptedModel(() => [text('done')]) })
  await one.server.warmUp()
  const modules = await loadedModules()
  const loaded: Record<string, string[]> = {}
  const first = async (name: string, send: () => Promise<unknown>) => {
    modules.urls.length = 0
    await send()
    loaded[name] = [...modules.urls]
  }
  const getPage = async () => {
    const headers = { accept: 'text/html' }
    const response = await fetch(`${one.url}/copilotkit/graphql`, { headers })
    expect(await response.text()).toMatch(/^<!doctype html>.*<\/html>\s*$/s)
  }
  await first('GraphQL', () => generate(one.url, randomUUID(), 'Hello'))
  await first('GraphiQL', getPage)
  modules.stop()
  expect(loaded).toEqual({ GraphQL: [], GraphiQL: [] })
})

test('the server handles other work between the steps of the warm-up', async () => {
  const { server } = await serve({ builtIns: false })
  let turns = 0
  let isCounting = true
  const counting = (async () => {
    for (; isCounting; turns++) await new Promise(setImmediate)
  })()
  await server.warmUp()
  isCounting = false
  await counting
  expect(turns).toBeGreaterThan(10)
})
