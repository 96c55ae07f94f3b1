import type { Message } from '@ag-ui/client'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RuntimeError } from '../../src/core/errors.ts'
import type { ModelEvent } from '../../src/core/model.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { tools } from '../support/tools.ts'
import { type Client, coreClient, ending, httpClient, poster, toolMessage } from './support.ts'

type Piece = 'text' | 'thought' | 'look' | 'ask' | 'paint' | 'cut' | 'pause' | 'none'

/** What a model does in one call, and what a person does after it. */
const turn = fc.record({
  steps: fc.array(
    fc.array(
      fc.constantFrom<Piece>('text', 'thought', 'look', 'ask', 'paint', 'cut', 'pause', 'none'),
      {
        maxLength: 6,
      },
    ),
    { minLength: 1, maxLength: 3 },
  ),
  answer: fc.constantFrom('approve', 'reject', 'dismiss', 'stop', 'type on'),
  joins: fc.boolean(),
  stops: fc.boolean(),
})

const paint = { name: 'paint', description: '', parameters: { type: 'object' } }

let last = 0

/**
 * Plays these pieces; every text is another, every call has an id of its own. Nothing is thought
 * after a call: clients leave that where the results of several calls happen to come.
 */
async function* play(pieces: readonly Piece[], signal: AbortSignal) {
  let calls = 0
  for (const piece of pieces) {
    const n = ++last
    if (['look', 'ask', 'paint'].includes(piece)) calls++
    if (piece === 'thought' && calls > 0) continue
    const written = (name: string, input: object): ModelEvent[] => {
      const words = JSON.stringify(input)
      const part = (from: number, to?: number): ModelEvent => ({
        ...{ type: 'input', callId: `c${n}`, name },
        text: words.slice(from, to),
      })
      return [part(0, 3), part(3), call(`c${n}`, name, input)]
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

/** Results stand behind the message that called and the results it has, as CopilotKit puts them. */
function withResults(messages: readonly Message[], callIds: readonly string[]): Message[] {
  const all = [...messages]
  for (const callId of callIds) {
    let at = all.findIndex(
      (one) => one.role === 'assistant' && one.toolCalls?.some(({ id }) => id === callId),
    )
    do at++
    while (all[at]?.role === 'tool')
    all.splice(at, 0, toolMessage(callId, 'painted'))
  }
  return all
}

/** Answers whatever the client was left with, until nothing is open. */
async function answered(client: Client, answer: string): Promise<void> {
  for (let rounds = 0; rounds < 10; rounds++) {
    const open = client.agent.pendingInterrupts
    if (open.length > 0) {
      const resume = open.map(({ id: interruptId }) =>
        answer === 'dismiss'
          ? { interruptId, status: 'cancelled' as const }
          : {
              ...{ interruptId, status: 'resolved' as const },
              payload: { approved: answer === 'approve', ...(answer === 'stop' && { stop: true }) },
            },
      )
      await client.run({ resume, tools: [paint] })
      continue
    }
    const { messages } = client.agent
    const recent = messages.slice(messages.findLastIndex(({ role }) => role === 'user'))
    const results = new Set(recent.map((one) => one.role === 'tool' && one.toolCallId))
    const calls = recent.flatMap((one) => (one.role === 'assistant' ? (one.toolCalls ?? []) : []))
    const mine = calls.filter(({ id, function: { name } }) => name === 'paint' && !results.has(id))
    if (mine.length === 0 || answer === 'type on') return
    client.agent.setMessages(
      withResults(
        messages,
        mine.map(({ id }) => id),
      ),
    )
    await client.run({ tools: [paint] })
  }
}

test('whatever a model does and a person answers, both dialects accept every stream, and all end with the same screen (I5)', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 3 }), async (turns) => {
      const box = tools()
      const queue: Piece[][] = []
      const model = scriptedModel((_request, _n, signal) => play(queue.shift() ?? ['text'], signal))
      const retry = { first: 0, attempts: 2 }
      const server = await serve({ model, tools: box.all, builtIns: false, retry })
      const client = httpClient(server.url, 't')
      const post = poster(server.url)
      for (const { steps, answer, joins, stops } of turns) {
        queue.splice(0, queue.length, ...steps.map((one) => [...one]))
        const saying = client.say('go', { tools: [paint] })
        const joined = joins ? httpClient(server.url, 't') : undefined
        const joining = joined?.connect({ tools: [paint] })
        if (stops) await post('/agent/default/stop/t', {})
        await saying
        await joining
        await answered(client, answer)
      }
      const fresh = httpClient(server.url, 't')
      await fresh.connect({ tools: [paint] })
      const core = await coreClient(server.url, 't')
      await core.connect()
      const reached = fresh.streams[0]!
      if (reached.events.length > 0) expect(ending(reached).type).toBe('RUN_FINISHED')
      expect(core.shown()).toEqual(fresh.shown())
      // A thought that was taken back can only be emptied: the protocol has no way to remove it.
      expect(client.shown().filter((line) => line !== 'reasoning: ')).toEqual(fresh.shown())
      await server.close()
    }),
    {
      numRuns: 15,
      timeout: 5_000,
      interruptAfterTimeLimit: 10_000, // on a busy machine a few less
      seed: Number(process.env.HANDRAIL_SEED) || 7,
      endOnFailure: false,
    },
  )
})
