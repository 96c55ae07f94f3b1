import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerOf, ask, weather } from '../../test/contracts/model.contract.ts'
import { anyJournal, anyOf } from '../../test/support/arbitrary.ts'
import { around } from '../../test/support/providers/around.ts'
import { type Front, type Step, startFront } from '../../test/support/providers/front.ts'
import { serve } from '../../test/support/serve.ts'
import { temporaryDirectory } from '../../test/support/server.ts'
import { historyFor } from '../core/branch.ts'
import { fold } from '../core/fold.ts'
import { type Message, messageSchema, userText } from '../core/messages.ts'
import type { Model } from '../core/model.ts'
import { anthropic } from './anthropic.ts'
import { google } from './google.ts'
import { openai } from './openai.ts'

let front: Front
let models: Model[]
beforeAll(async () => {
  front = await startFront()
  const here = around(front.url)
  models = [
    openai({ model: 'gpt-4o', api: 'chat' })(here),
    openai({ model: 'gpt-5' })(here),
    anthropic({ model: 'claude-sonnet-4-5' })(here),
    google({ model: 'gemini-2.5-flash' })(here),
    google({ model: 'gemini-3-pro' })(here),
  ]
})
afterAll(() => front.stop())

/** The front tells why. */
function refused(error: unknown): void {
  if (front.problems.length === 0) throw error
}

/** Every provider takes this history, with tools and without. */
async function accepted(messages: readonly Message[]): Promise<void> {
  front.script = () => [{ text: 'ok' }]
  for (const model of models) {
    for (const tools of [[], [weather]])
      await answerOf(model, ask('', { messages, tools, system: [] })).catch(refused)
  }
  expect(front.problems.splice(0)).toEqual([])
}

const anyMessages = fc.array(anyOf(messageSchema), { maxLength: 10 }) as fc.Arbitrary<Message[]>

/** What providers sign and want back, and what somebody may have put in its place. */
const signed = fc.record(
  {
    anthropic: fc.oneof(fc.record({ signature: fc.string() }), fc.jsonValue()),
    google: fc.oneof(fc.record({ thoughtSignature: fc.string({ minLength: 1 }) }), fc.jsonValue()),
    openai: fc.oneof(
      fc.record({ itemId: fc.constant('rs_1'), reasoningEncryptedContent: fc.string() }),
      fc.jsonValue(),
    ),
  },
  { requiredKeys: [] },
)
const anySigned = fc
  .array(fc.tuple(anyOf(messageSchema) as fc.Arbitrary<Message>, signed), { maxLength: 8 })
  .map((list) =>
    list.map(([message, meta]) => ({
      ...message,
      parts: message.parts.map((part) => ({ ...part, meta })),
    })),
  )

describe('whatever the history, every provider accepts the request (I8)', () => {
  test('any messages', async () => {
    await fc.assert(fc.asyncProperty(anyMessages, accepted), { numRuns: 60 })
  }, 120_000)

  test('any messages with what providers signed, or others made up', async () => {
    await fc.assert(fc.asyncProperty(anySigned, accepted), { numRuns: 100 })
  }, 120_000)

  test('a thought with a signature that says nothing', async () => {
    const meta = { anthropic: { signature: ' ' } }
    const thought = { type: 'reasoning' as const, text: 'hm', meta }
    const parts = [thought, { type: 'text' as const, text: 'yes' }]
    await accepted([
      userText('u', 'hi'),
      { id: 'a', role: 'assistant', parts },
      userText('v', 'go'),
    ])
  })

  test('a thought that nothing follows', async () => {
    const meta = { openai: { itemId: 'rs_1', reasoningEncryptedContent: 'sealed' } }
    const thought = { type: 'reasoning' as const, text: 'hm', meta }
    const parts = [{ type: 'text' as const, text: 'yes' }, thought]
    await accepted([
      userText('u', 'hi'),
      { id: 'a', role: 'assistant', parts },
      userText('v', 'go'),
    ])
  })

  test('any journal', async () => {
    const histories = anyJournal.map((entries) => {
      const state = fold('t', entries)
      return [...state.runs.values()].map((run) => historyFor(state, run))
    })
    const property = fc.asyncProperty(histories, async (all) => {
      for (const messages of all.slice(0, 3)) await accepted(messages)
    })
    await fc.assert(property, { numRuns: 30 })
  }, 120_000)

  test('what real chats leave: approvals, rejections, edits, cancels, cuts, restarts', async () => {
    await fc.assert(fc.asyncProperty(story, play), { numRuns: 8 })
  }, 240_000)
})

type Answer = 'text' | 'ask' | 'both' | 'malformed' | 'unknown' | 'cut' | 'cut call' | 'hang'
const answers: Record<Answer, readonly Step[]> = {
  text: [{ text: 'Well, ' }, { text: 'then.' }],
  ask: [
    { text: 'I write. ' },
    { call: { id: 'c1', name: 'write_file', pieces: ['{"path":"a.txt","content":"x"}'] } },
  ],
  both: [
    { call: { id: 'c1', name: 'write_file', pieces: ['{"path":"b.txt",', '"content":"x"}'] } },
    { raw: secondCall('weather', '{"city":"Rome"}') },
  ],
  malformed: [{ call: { id: 'c1', name: 'weather', pieces: ['{"city": '] } }],
  unknown: [{ call: { id: 'c1', name: 'no_such_tool', pieces: ['{}'] } }],
  cut: [{ text: 'Half a ' }, 'cut'],
  'cut call': [{ begin: { id: 'c1', name: 'weather', pieces: ['{"ci'] } }, 'cut'],
  hang: [{ text: 'I am thin' }, 'hang'],
}

function secondCall(name: string, input: string): string {
  const call = { index: 1, id: 'c2', type: 'function', function: { name, arguments: input } }
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`
}

const anyAnswer = fc.constantFrom(...(Object.keys(answers) as Answer[]))
const anyMove = fc.constantFrom('say', 'edit', 'cancel', 'approve', 'reject', 'restart')
const story = fc.record({
  replies: fc.array(anyAnswer, { minLength: 4, maxLength: 12 }),
  moves: fc.array(anyMove, { minLength: 3, maxLength: 8 }),
})

async function play({ replies, moves }: { replies: Answer[]; moves: string[] }): Promise<void> {
  const directory = await temporaryDirectory()
  const settings = {
    model: openai({ model: 'gpt-4o', api: 'chat' })(around(front.url)),
    retry: { first: 5, attempts: 2 },
  }
  const open = () => serve(settings, { data: directory.path })
  let server = await open()
  let asked = 0
  front.script = () => answers[replies[asked++ % replies.length]!]
  const last = async () => (await server.chat('story')).interactions?.at(-1)
  const settled = async () => {
    for (let tries = 0; tries < 200; tries++) {
      const now = await last()
      const hangs = replies[(asked - 1) % replies.length] === 'hang'
      if (now?.status !== 'RUNNING' || hangs) return now
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error('it does not come to rest')
  }
  const begin = async (starting: ReturnType<typeof server.start>) => {
    const stream = await starting
    stream.leave()
  }
  await begin(server.start('story', 'begin'))
  for (const move of moves) {
    const now = await settled()
    if (move === 'restart') {
      await server.close()
      server = await open()
    }
    if (move === 'say') await begin(server.start('story', 'and on', '?when_busy=cancel'))
    if (move === 'edit') await begin(server.edit('story', now.id, 'rather', '?when_busy=cancel'))
    if (move === 'cancel') await server.cancel('story', now.id)
    if (move !== 'approve' && move !== 'reject') continue
    for (const { approval_id } of now?.approvals ?? [])
      await server.approve('story', now.id, { approval_id, approved: move === 'approve' })
  }
  const now = await settled()
  if (now?.status === 'RUNNING') await server.cancel('story', now.id)
  const { state } = await server.server.runtime.thread('story')
  const histories = [...state.runs.values()].map((run) => historyFor(state, run))
  await server.close()
  expect(front.problems.splice(0)).toEqual([])
  for (const history of histories) await accepted([...history, userText('next', 'and now?')])
  await directory.remove()
}
