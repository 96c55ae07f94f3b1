import type { Model, ModelEvent, ModelRequest } from '../core/model.ts'

/** What one call does, in order: plays an event, throws an error, or waits for the signal. */
export type ScriptedStep = readonly (ModelEvent | Error | 'wait')[]

type Script = (request: ModelRequest, call: number, signal: AbortSignal) => Played
type Played = Iterable<ModelEvent | Error | 'wait'> | AsyncIterable<ModelEvent | Error | 'wait'>

export interface ScriptedModel extends Model {
  /** Every request so far, as it was when it came. */
  readonly requests: readonly ModelRequest[]
}

/** For tests: plays a given step per call, the first for call 0. */
export function scriptedModel(script: readonly ScriptedStep[] | Script): ScriptedModel {
  const requests: ModelRequest[] = []
  const play: Script =
    typeof script === 'function'
      ? script
      : (_request, call) => script[call] ?? [new Error(`The script has no step ${call}.`)]

  return {
    name: 'scripted',
    requests,
    async *stream(request, signal) {
      const call = requests.length
      requests.push({ ...request, messages: [...request.messages], tools: [...request.tools] })
      for await (const item of play(request, call, signal)) {
        signal.throwIfAborted()
        if (item instanceof Error) throw item
        if (item === 'wait') await aborted(signal)
        else yield item
      }
    },
  }
}

export const text = (text: string): ModelEvent => ({ type: 'text', text })

export const call = (callId: string, name: string, input: unknown): ModelEvent => ({
  type: 'call',
  callId,
  name,
  input: JSON.stringify(input),
})

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
