import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { type Message, userText } from '../../src/core/messages.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { modelFor } from '../../src/models/choose.ts'
import { answerOf, ask, failureOf, weather } from '../contracts/model.contract.ts'

/** Against the real providers whose keys are set. Costs a few cents; never part of `npm test`. */
const config = readConfig(process.env)
const { env } = process
const subjects = [
  { key: 'openai', name: `openai/${env.LIVE_OPENAI_MODEL ?? 'gpt-5-mini'}` },
  { key: 'anthropic', name: `anthropic/${env.LIVE_ANTHROPIC_MODEL ?? 'claude-haiku-4-5'}` },
  { key: 'google', name: `google/${env.LIVE_GOOGLE_MODEL ?? 'gemini-2.5-flash'}` },
] as const
const apis = ['responses', 'chat'] as const

/** A red square. */
const png =
  'iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAF0lEQVR4nGP4z8BAEiJN9aiGUQ1DSgMAkPn/Afnh+ngAAAAASUVORK5CYII='

for (const { key, name } of subjects) {
  for (const openaiApi of key === 'openai' ? apis : apis.slice(0, 1)) {
    const { apiKey } = config.access[key]
    const title = `${name}${key === 'openai' ? ` (${openaiApi})` : ''}`
    if (apiKey === undefined) console.log(`${title} is skipped: no key for ${key} is set`)
    describe.skipIf(apiKey === undefined)(title, () => {
      const around = { ...config, clock: systemClock, openaiApi }
      const model = () => modelFor(name, around)

      test('text and usage', async () => {
        const { text, usage } = await answerOf(model(), ask('Say the word blue and nothing else.'))
        expect(text.toLowerCase()).toContain('blue')
        expect(usage?.inputTokens).toBeGreaterThan(0)
        expect(usage?.outputTokens).toBeGreaterThan(0)
      })

      test('calls, their results, and a history with everything in it', async () => {
        const request = ask('What is the weather in Paris and in Rome? Use the tool for both.', {
          tools: [weather],
        })
        const { calls, events } = await answerOf(model(), request)
        expect(calls.length).toBeGreaterThan(0)
        const parts = events.flatMap((event): Message['parts'] =>
          event.type === 'call' ? [event] : [],
        )
        const results = calls.map(
          ({ callId }, i): Message => ({
            id: `r${i}`,
            role: 'tool',
            callId,
            parts: [{ type: 'text', text: i === 0 ? '21 degrees' : '' }],
            ...(i > 0 && { failed: true }),
          }),
        )
        const half: Message = {
          id: 'p',
          role: 'assistant',
          parts: [{ type: 'text', text: 'It is' }],
          partial: true,
        }
        const open = { type: 'call' as const, callId: 'odd id/1', name: 'odd name', input: '{"a":' }
        const messages: Message[] = [
          ...request.messages,
          { id: 'a', role: 'assistant', parts },
          ...results,
          half,
          userText('u2', 'hm \ud83d'),
          userText('u3', ' '),
          { id: 'a2', role: 'assistant', parts: [open] },
          userText('u4', 'Say the word green and nothing else.'),
        ]
        const { text } = await answerOf(model(), { ...request, messages })
        expect(text.toLowerCase()).toContain('green')
      })

      test('images', async () => {
        const image = { type: 'media' as const, mediaType: 'image/png', data: png }
        const said = { type: 'text' as const, text: 'Which colour is this square? One word.' }
        const message: Message = { id: 'u', role: 'user', parts: [said, image] }
        const { text } = await answerOf(model(), ask('', { messages: [message] }))
        expect(text).toMatch(/red/i)
      })

      test('a stop', async () => {
        const abort = new AbortController()
        const answering = answerOf(model(), ask('Count to a thousand in words.'), abort.signal)
        setTimeout(() => abort.abort(new Error('enough')), 1_500)
        await expect(answering).rejects.toThrow()
      })

      test('a wrong key, and a model that is not there', async () => {
        const access = { ...config.access, [key]: { ...config.access[key], apiKey: 'wrong-key' } }
        const wrong = modelFor(name, { ...around, access })
        expect(await failureOf(answerOf(wrong, ask('hi')))).toMatchObject({
          code: 'authentication',
        })
        const nobody = modelFor(`${key}/no-such-model-at-all`, around)
        expect(await failureOf(answerOf(nobody, ask('hi')))).toMatchObject({
          code: 'model_request',
        })
      })
    })
  }
}
