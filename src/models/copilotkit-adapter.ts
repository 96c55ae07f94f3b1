import type { Model, ModelEvent, ModelRequest } from '../core/model.ts'
import { newId } from '../lib/ids.ts'
import { type AdapterMessage, adapterMessages } from './copilotkit/messages.ts'
import { EventSubject } from './copilotkit/subject.ts'
import { providerError } from './provider-errors.ts'
import { safeName, safeText } from './safe.ts'

/** CopilotKit's interface: an object that is given a request and writes to its event source. */
export interface ServiceAdapter {
  process(request: ServiceRequest): Promise<ServiceResponse>
  provider?: string
  model?: string
  name?: string
}

export interface ServiceRequest {
  eventSource: { stream(callback: (events: EventSubject) => Promise<void>): Promise<void> }
  messages: AdapterMessage[]
  actions: { name: string; description: string; jsonSchema: string; available: 'enabled' }[]
  forwardedParameters?: Record<string, unknown>
  extensions?: unknown
}

export interface ServiceResponse {
  threadId?: string
  runId?: string
  extensions?: unknown
}

export interface ServiceAdapterOptions {
  name?: string
  accepts?: readonly string[]
  window?: number
}

/**
 * A CopilotKit service adapter as a model. `process` is one call: the budget was asked before it,
 * and what it returns as `extensions` is kept with the message and given to it the next time.
 */
export function copilotkitAdapter(
  adapter: ServiceAdapter,
  options: ServiceAdapterOptions = {},
): Model {
  const named = [adapter.provider, adapter.model].filter(Boolean).join('/')
  const { name = named || adapter.name || 'service-adapter', accepts = [], window } = options
  return {
    name,
    ...(adapter.provider !== undefined && { provider: adapter.provider }),
    accepts,
    ...(window !== undefined && { window }),
    async *stream(request, signal) {
      signal.throwIfAborted()
      const subject = new EventSubject(request)
      // Adapters are told of no signal: one that does not come back is left behind.
      let stop = () => {}
      const stopped = new Promise<never>((_resolve, reject) => {
        stop = () => {
          reject(signal.reason)
          subject.error(signal.reason)
        }
      })
      stopped.catch(() => {})
      signal.addEventListener('abort', stop, { once: true })
      let begun = false
      let answering: Promise<void> | undefined
      try {
        const answered = adapter.process({
          ...requestFor(request, accepts),
          eventSource: {
            stream: async (callback) => {
              answering = callback(subject).then(
                () => subject.complete(),
                (error: unknown) => subject.error(error),
              )
            },
          },
        })
        const response = await Promise.race([answered, stopped])
        if (!answering) subject.complete()
        for await (const event of subject.events()) {
          begun = true
          yield event
        }
        const { extensions } = response ?? {}
        if (extensions) yield { type: 'meta', meta: { extensions } } satisfies ModelEvent
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw providerError(error, begun)
      } finally {
        signal.removeEventListener('abort', stop)
      }
    },
  }
}

function requestFor(request: ModelRequest, accepts: readonly string[]) {
  const { temperature, maxOutputTokens, stop, toolChoice } = request.parameters ?? {}
  const named = typeof toolChoice === 'object' ? toolChoice.name : undefined
  const choice = named === undefined ? toolChoice : 'function'
  const extensions = request.messages.findLast(({ meta }) => meta?.extensions)?.meta?.extensions
  return {
    messages: adapterMessages(request, accepts, newId),
    actions: request.tools.map(({ name, description, parameters }) => ({
      name: safeName(name),
      description: safeText(description),
      jsonSchema: JSON.stringify(parameters ?? { type: 'object', properties: {} }),
      available: 'enabled' as const,
    })),
    forwardedParameters: {
      ...(temperature !== undefined && { temperature }),
      ...(maxOutputTokens !== undefined && { maxTokens: maxOutputTokens }),
      ...(stop && { stop }),
      ...(choice !== undefined && { toolChoice: choice }),
      ...(named !== undefined && { toolChoiceFunctionName: named }),
    },
    ...(extensions !== undefined && { extensions }),
  }
}
