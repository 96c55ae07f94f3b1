import type { Agent, AgentContext } from '../../../src/core/agent.ts'
import { RuntimeError } from '../../../src/core/errors.ts'
import { callsOf, type Message } from '../../../src/core/messages.ts'
import type { ScriptedStep } from '../../../src/models/scripted.ts'

/** One thing that a model or an agent of a captured exchange did, as the fixtures write it. */
export type Play = [kind: string, ...given: never[]]

/** Steps of a scripted model: texts and calls in the pieces in which they came. */
export const playedModel = (plays: readonly (readonly Play[])[]): ScriptedStep[] =>
  plays.map((one) => one.flatMap(modelEvents))

function modelEvents([kind, ...given]: Play): ScriptedStep[number][] {
  const words = given as string[]
  const [callId = '', name = '', ...pieces] = words
  const inputs = pieces.map((text) => ({ type: 'input' as const, callId, name, text }))
  switch (kind) {
    case 'text':
      return words.map((text) => ({ type: 'text', text }))
    case 'input':
      return inputs
    case 'call':
      return [...inputs, { type: 'call', callId, name, input: pieces.join('') }]
    case 'wait':
      return ['wait']
    case 'fail':
      return [new RuntimeError('model_request')]
    default:
      throw new Error(`no model plays ${kind}`)
  }
}

/** An agent that plays a list in each of its legs; its calls are written by the model, for whom they are added to `script`. */
export function player(name: string, plays: readonly (readonly Play[])[], script: ScriptedStep[]) {
  const contexts: AgentContext[] = []
  const agent: Agent = {
    name,
    async *run(ctx) {
      const began = ctx.state() ?? {}
      let answer: unknown
      contexts.push(ctx)
      for (const [kind, ...given] of plays[contexts.length - 1] ?? []) {
        const [first, second] = given as unknown[]
        const words = given as string[]
        switch (kind) {
          case 'step':
            yield { type: 'step', name: String(first), done: Boolean(second) }
            break
          case 'state':
            yield { type: 'state', value: filled(first, began) }
            break
          case 'event':
            yield { type: 'event', name: String(first), value: second }
            break
          case 'piece': {
            const id = ctx.newId('msg')
            yield { type: 'piece', piece: { kind: 'text', id, text: words.join('') } }
            break
          }
          case 'text':
            yield { type: 'message', message: textMessage(ctx.newId('msg'), words.join('')) }
            break
          case 'answered':
            yield { type: 'message', message: textMessage(ctx.newId('msg'), `${first}${answer}`) }
            break
          case 'call':
            script.push(modelEvents([kind, ...given]))
            await ctx.model({ messages: ctx.messages(), tools: ctx.tools })
            break
          case 'results':
            await ctx.call(openCalls(ctx.messages()))
            break
          case 'ask': {
            const question = { kind: 'input', key: 'q', title: 'A question', input: first } as const
            answer = (await ctx.ask(question)).value
            break
          }
          case 'wait':
            await new Promise((_resolve, reject) => {
              ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason), { once: true })
            })
            break
          case 'fail':
            throw new Error(String(first))
          default:
            throw new Error(`no agent plays ${kind}`)
        }
      }
    },
  }
  return { agent, contexts }
}

const textMessage = (id: string, text: string): Message => ({
  ...{ id, role: 'assistant' },
  parts: [{ type: 'text', text }],
})

/** `$state` is the state that the run began with. */
const filled = (value: unknown, state: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_key, one) => (one === '$state' ? state : one))

function openCalls(messages: readonly Message[]) {
  const answered = new Set(messages.map(({ callId }) => callId))
  return messages.flatMap(callsOf).filter(({ callId }) => !answered.has(callId))
}
