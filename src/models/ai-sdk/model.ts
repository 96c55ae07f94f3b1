import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider'
import type { Model, ModelRequest } from '../../core/model.ts'
import { lazily } from '../../lib/lazily.ts'
import { providerError } from '../provider-errors.ts'
import { safeName } from '../safe.ts'
import type { Habits } from '../settle.ts'
import { eventsOf } from './events.ts'
import { promptOf, toolsOf } from './prompt.ts'

export interface AiSdkOptions {
  name: string
  provider: string
  account: string
  /** Keys of the operator, which errors must not repeat. */
  secrets?: readonly string[]
  accepts: readonly string[]
  window: number
  meta?: Habits['meta']
  /** A provider that wants no tools where none may be called. */
  dropsTools?: boolean
  providerOptions?: SharedV3ProviderOptions
  /** Returns the model, with a key the one for that key. */
  load(apiKey?: string): Promise<LanguageModelV3>
}

/** A model of the AI SDK's provider layer: one `doStream` is one provider call. */
export function aiSdkModel(options: AiSdkOptions): Model {
  const { name, provider, account, accepts, window, secrets = [] } = options
  const load = lazily(() => options.load())
  return {
    name,
    provider,
    account,
    accepts,
    window,
    async *stream(request, signal, use) {
      // The SDK takes an abort for one only if it comes without a reason.
      const own = new AbortController()
      const stop = () => own.abort()
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      let begun = false
      const { apiKey } = use ?? {}
      try {
        const model = await (apiKey === undefined ? load() : options.load(apiKey))
        const { stream } = await model.doStream(callOf(request, options, own.signal))
        for await (const event of eventsOf(stream, request)) {
          begun = true
          yield event
        }
      } catch (error) {
        if (signal.aborted) throw signal.reason
        const keys = apiKey === undefined ? secrets : [...secrets, apiKey]
        throw providerError(error, begun, keys)
      } finally {
        signal.removeEventListener('abort', stop)
      }
    },
  }
}

function callOf(
  request: ModelRequest,
  { accepts, meta, dropsTools, providerOptions }: AiSdkOptions,
  abortSignal: AbortSignal,
): LanguageModelV3CallOptions {
  const { temperature, maxOutputTokens, stop, toolChoice } = request.parameters ?? {}
  const tools = toolsOf(request)
  const flat = tools.length === 0 || (dropsTools === true && toolChoice === 'none')
  return {
    prompt: promptOf(request, { accepts, flat, ...(meta && { meta }) }),
    abortSignal,
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(stop && { stopSequences: stop }),
    ...(providerOptions && { providerOptions }),
    ...(!flat && { tools, ...choiceOf(toolChoice) }),
  }
}

function choiceOf(choice: NonNullable<ModelRequest['parameters']>['toolChoice']) {
  if (choice === undefined) return {}
  if (typeof choice === 'string') return { toolChoice: { type: choice } }
  return { toolChoice: { type: 'tool' as const, toolName: safeName(choice.name) } }
}
