import type { Known } from '../../core/entries.ts'
import type { AskRecord, Run, ThreadState } from '../../core/state.ts'
import { openAsks, standInCall } from '../asks.ts'
import { interruptOf, standInSuffix } from './asks.ts'
import { contentOf, event, usageOf } from './events.ts'
import type { Listener } from './telling.ts'

/**
 * How a stream ends: with a failure, cancelled, with calls for the client, with interrupts, or well.
 * `list`: the whole list of messages goes before it.
 */
export function finishOf(
  to: Listener,
  state: ThreadState,
  runId: string,
  entry?: Known,
): { list: boolean; last: string[] } {
  if (entry?.kind === 'run.failed') {
    const { code, message } = entry.body.error
    const usage = usageOf(state.runs.get(runId)!)
    return { list: false, last: [event('RUN_ERROR', { message, code, ...usage })] }
  }
  const run = state.runs.get(runId)
  const finished = (more: object): string => {
    const { threadId, runId } = to
    return event('RUN_FINISHED', { threadId, runId, ...more, ...(run && usageOf(run)) })
  }
  if (entry?.kind === 'run.cancelled') {
    const outcome = to.protocol === '1' ? { outcome: { type: 'cancelled' } } : {}
    const last = finished({ ...outcome, metadata: { handrail: { status: 'cancelled' } } })
    return { list: false, last: [last] }
  }
  const asks = open(state, run, to)
  if (asks.interrupts.length > 0) {
    const interrupts = asks.interrupts.map((record) => interruptOf(record, to.protocol))
    const last = finished({ outcome: { type: 'interrupt', interrupts } })
    return { list: entry !== undefined, last: [last] }
  }
  const calls = entry ? asks.calls.flatMap((record) => standIn(record, to)) : []
  // 1.0 would name the calls in its outcome; 0.0.59 refuses an outcome that does, and both read them
  // from the messages.
  return { list: false, last: [...calls, finished({})] }
}

/** Questions of the run, or of the one that it waits behind. */
function open(state: ThreadState, run: Run | undefined, { tools }: Listener) {
  const active = state.runs.get(state.active ?? '')
  const waits = active?.status === 'waiting' ? active : run
  return waits ? openAsks(state, waits, tools) : { calls: [], interrupts: [] }
}

/** The server's own call of a client's tool, in place of an interrupt. */
function standIn(record: AskRecord, { tools }: Listener): string[] {
  if (record.ask.kind === 'client_tool') return [] // told when its message was
  const { id, name, arguments: text } = standInCall(record, tools)
  const start = { toolCallId: id, toolCallName: name, parentMessageId: id + standInSuffix }
  return [
    event('TOOL_CALL_START', start),
    contentOf('input', id, text),
    event('TOOL_CALL_END', { toolCallId: id }),
  ]
}
