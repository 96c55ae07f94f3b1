import type { Ask } from '../../core/entries.ts'
import type { AskRecord, ThreadState } from '../../core/state.ts'
import { outcomesOf, whoAsks } from '../asks.ts'
import type { RuntimeEvent, WholeMessage } from './events.ts'

/** What a client is shown of a question, and sends back with the answer to say which it was. */
export function interruptValue(ask: Ask): string {
  const { askId, kind, title, tool, input, preview, evidence, schema, deadline, card, rule } = ask
  if (kind === 'input' && input !== undefined) return asText(inputValue(ask))
  const about = { askId, kind, title, ...whoAsks(ask), ...(tool !== undefined && { tool }) }
  const more = {
    ...(input !== undefined && { input }),
    ...(preview !== undefined && { preview }),
    ...(evidence !== undefined && { evidence }),
    ...(schema !== undefined && { schema }),
    ...(card && { card }),
    ...(rule !== undefined && { rule }),
    ...(kind === 'in_doubt' && { outcomes: outcomesOf(ask) }),
  }
  return JSON.stringify({ ...about, ...more, deadline: new Date(deadline).toISOString() })
}

/** The value of an ask of kind `input`, before it is written as text. */
export const inputValue = ({ input }: Ask): unknown => withMessages(input)?.value ?? input

export function interruptEvent(record: AskRecord): RuntimeEvent {
  const value = interruptValue(record.ask)
  const messages = messagesWith(record)
  if (!messages) return { type: 'MetaEvent', name: 'LangGraphInterruptEvent', value }
  const name = 'CopilotKitLangGraphInterruptEvent'
  return { type: 'MetaEvent', name, data: { value, messages } }
}

/** The messages that came with an ask, if any did. */
function messagesWith({ ask, raisedAt }: AskRecord): WholeMessage[] | undefined {
  const brought = ask.kind === 'input' ? withMessages(ask.input) : undefined
  return brought?.messages.flatMap((one, i) => whole(one, `${ask.askId}-${i}`, raisedAt))
}

/** The ids of messages and calls that came with questions: clients run those calls too, and send their results. */
export function shownIds({ asks }: ThreadState): Set<string> {
  const ids = new Set<string>()
  for (const record of asks.values()) for (const { id } of messagesWith(record) ?? []) ids.add(id)
  return ids
}

const asText = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** An agent that asks by `copilotKitInterrupt` brings messages along with its question. */
function withMessages(input: unknown): { value: unknown; messages: unknown[] } | undefined {
  if (typeof input !== 'object' || input === null) return undefined
  const { __copilotkit_interrupt_value__: value, __copilotkit_messages__: messages } =
    input as Record<string, unknown>
  return Array.isArray(messages) ? { value: value ?? '', messages } : undefined
}

/** One of those messages, as LangChain writes them. */
function whole(message: unknown, fallback: string, at: number): WholeMessage[] {
  const said = (message ?? {}) as Record<string, unknown>
  const id = typeof said.id === 'string' ? said.id : fallback
  const list: WholeMessage[] = []
  if (typeof said.content === 'string' && said.content !== '') {
    list.push({ type: 'text', id, content: said.content, role: 'assistant', at })
  }
  for (const [i, raw] of (Array.isArray(said.tool_calls) ? said.tool_calls : []).entries()) {
    const { id: callId, name, args } = (raw ?? {}) as Record<string, unknown>
    list.push({
      type: 'action',
      id: typeof callId === 'string' ? callId : `${id}-${i}`,
      name: String(name ?? ''),
      args: JSON.stringify(args ?? {}),
      parentMessageId: id,
      at,
    })
  }
  return list
}
