import type { Message as AguiMessage } from '@ag-ui/client'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RuntimeError } from '../../../src/core/errors.ts'
import type { ModelEvent } from '../../../src/core/model.ts'
import { call, scriptedModel, text } from '../../../src/models/scripted.ts'
import { serve } from '../../support/serve.ts'
import { tools } from '../../support/tools.ts'
import { httpClient } from '../support.ts'
import { type Action, openPage, type Page, userMessage } from './support.ts'

type Piece = 'text' | 'thought' | 'look' | 'ask' | 'paint' | 'cut' | 'pause' | 'none'

/** What a model does in one call, and what a person does after it. */
const turn = fc.record({
  steps: fc.array(
    fc.array(
      fc.constantFrom<Piece>('text', 'thought', 'look', 'ask', 'paint', 'cut', 'pause', 'none'),
      { maxLength: 6 },
    ),
    { minLength: 1, maxLength: 3 },
  ),
  answer: fc.constantFrom('yes', 'no', 'stop', 'type on'),
  joins: fc.boolean(),
  stops: fc.constantFrom('no', 'no', 'leaves', 'elsewhere'),
})

let last = 0

/** Plays these pieces; every text is another, every call has an id of its own. */
async function* play(pieces: readonly Piece[], signal: AbortSignal) {
  for (const piece of pieces) {
    const n = ++last
    const written = (name: string, input: object): ModelEvent[] => {
      const words = JSON.stringify(input)
      const part = { type: 'input' as const, callId: `c${n}`, name }
      const parts = [words.slice(0, 3), words.slice(3)].map((text) => ({ ...part, text }))
      return [...parts, call(`c${n}`, name, input)]
    }
    const events: Partial<Record<Piece, () => ModelEvent[]>> = {
      text: () => [text(`word${n} `), text(`more${n} `)],
      thought: () => [{ type: 'reasoning', text: `thought${n} ` }],
      look: () => written('look', { at: `sea${n}` }),
      ask: () => written('send', { to: 'ann', amount: 1 }),
      paint: () => written('paint', { n }),
    }
    if (piece === 'cut') throw new RuntimeError('stream_cut')
    if (piece === 'pause') await new Promise((resolve) => setTimeout(resolve, 1))
    signal.throwIfAborted()
    yield* events[piece]?.() ?? []
  }
}

/** Answers whatever the page was left with, until nothing is open. */
async function answered(page: Page, answer: string): Promise<void> {
  for (let rounds = 0; rounds < 10 && page.interrupt && answer !== 'type on'; rounds++)
    await page.resolve(answer === 'stop' ? { approved: false, stop: true } : answer)
}

/** What an AG-UI client shows, in the words of a page. */
function flat(messages: readonly AguiMessage[]): string[] {
  return messages.flatMap((one) => {
    if (one.role === 'tool') return [`result ${one.content}`]
    if (one.role !== 'user' && one.role !== 'assistant') return []
    const said = one.content ? [`${one.role}: ${one.content}`] : []
    const calls = one.role === 'assistant' ? (one.toolCalls ?? []) : []
    return [
      ...said,
      ...calls.map(({ function: { name, arguments: args } }) => `call ${name}(${args})`),
    ]
  })
}

const texts = (lines: readonly string[]) => lines.filter((line) => /^(user|assistant): /.test(line))

test('whatever a model does and a person answers, every response is well formed, and pages and AG-UI end with the same screen (I5)', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 3 }), async (turns) => {
      const box = tools()
      const queue: Piece[][] = []
      const model = scriptedModel((_request, _n, signal) => play(queue.shift() ?? ['text'], signal))
      const retry = { first: 0, attempts: 2 }
      const env = { HANDRAIL_GRAPHQL_GRACE_MS: '0' }
      const server = await serve({ model, tools: box.all, builtIns: false, retry }, { env })
      const paint: Action = { name: 'paint', handler: () => 'painted' }
      const page = openPage(server.url, { actions: [paint] })
      let left = false
      for (const { steps, answer, joins, stops } of turns) {
        queue.splice(0, queue.length, ...steps.map((one) => [...one]))
        page.add(userMessage('go'))
        const watching = page.begin()
        const joining = joins ? openPage(server.url).complete() : undefined
        if (stops === 'elsewhere')
          await fetch(`${server.url}/copilotkit/agent/default/stop/t`, {
            ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
          })
        if (stops === 'leaves') {
          left = true
          watching.stop()
        }
        const { error } = await watching.done
        expect(error).toBeUndefined()
        await joining
        await page.complete() // what is left to run, and to be shown again
        await answered(page, answer)
      }
      await page.complete()
      while (page.interrupt) await answered(page, 'no')
      const fresh = openPage(server.url)
      await fresh.load()
      const agui = httpClient(server.url, 't')
      await agui.connect()
      const shown = flat(agui.agent.messages)
      expect(texts(fresh.shown())).toEqual(texts(shown))
      expect(fresh.shown().toSorted()).toEqual(shown.toSorted())
      // Who left in the middle of a text has what it had; all others have what is so.
      if (!left) expect(texts(page.shown())).toEqual(texts(shown))
      await server.close()
    }),
    {
      numRuns: 12,
      timeout: 8_000,
      interruptAfterTimeLimit: 5_000, // on a busy machine a few less
      seed: Number(process.env.HANDRAIL_SEED) || 7,
      endOnFailure: false,
    },
  )
})
