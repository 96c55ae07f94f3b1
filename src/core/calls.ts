import type { Bench } from './effects.ts'
import { effectKey, recorded } from './effects.ts'
import { type Answer, type Ask, type Draft, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { type Execution, execute, notBegun } from './execute.ts'
import type { Guard } from './guard.ts'
import { LegStop } from './leg.ts'
import { asText, type CallPart, callsOf, toolText } from './messages.ts'
import { callDigest, judge, type PolicyRule } from './policy.ts'
import type { AskRecord, EffectRecord } from './state.ts'
import {
  defaultToolTimeout,
  jsonSchemaOf,
  type OutcomeUnknown,
  readInput,
  type Tool,
} from './tool.ts'

export interface Toolbox {
  agent: string
  /** As they are now. */
  tools: () => ReadonlyMap<string, Tool>
  policy: readonly PolicyRule[]
  /** How many calls of one step run at once. */
  parallel: number
  /** An outcome that was kept while the store was away. */
  evidence: (effectId: string) => Promise<unknown>
  guard?: Guard
}

/** What is to be done with one call. */
type Plan =
  | { do: 'say'; text: string; failed: boolean; also: Draft[]; messageId?: string }
  | { do: 'run'; execution: Execution }
  | { do: 'raise'; ask: () => Promise<Ask> }
  | { do: 'look'; execution: Execution; record: EffectRecord; stale: boolean; cut?: OutcomeUnknown }
  | { do: 'wait' }

/** Guarded tool calls of one leg: each by the policy, the answers of people, and the ledger. */
export function toolCaller(box: Toolbox, bench: Bench) {
  const { leg, channel } = bench

  return async (calls: readonly CallPart[]): Promise<void> => {
    const open = calls.filter(
      (call) => !bench.messages.some((one) => one.role === 'tool' && one.callId === call.callId),
    )
    let parked = false
    const raise = async (asks: Promise<Ask>[]): Promise<void> => {
      if (asks.length === 0) return
      const ready = await Promise.all(asks)
      await channel.commit(...ready.map((ask) => draft('ask.raised', { ask })))
      parked = true
    }
    const doubted = async (call: CallPart, execution: Execution): Promise<void> => {
      const cut = await execute(execution, bench)
      const record = leg.thread.state.effects.get(execution.intent.effectId)
      if (cut && record) await act(call, { do: 'look', execution, record, stale: false, cut })
    }
    const act = async (call: CallPart, plan: Plan): Promise<void> => {
      leg.signal.throwIfAborted()
      if (plan.do === 'wait') parked = true
      else if (plan.do === 'raise') await raise([plan.ask()])
      else if (plan.do === 'run') await doubted(call, plan.execution)
      else if (plan.do === 'look') await act(call, await lookAt(plan, call, box, bench))
      else {
        const { messageId = '' } = plan
        const free = messageId !== '' && !leg.thread.state.messages.has(messageId)
        const id = free ? messageId : bench.newId('msg')
        const message = toolText(id, call, plan.text, plan.failed)
        if (plan.failed) message.meta = { notRun: true }
        channel.write(...plan.also, draft('message.added', { message, for: 'both' }))
        bench.messages.push(message)
      }
    }
    // What needs a person is asked at once and together, while the rest already runs.
    const plans = open.map((call) => [call, planFor(call, box, bench)] as const)
    const asks = plans.flatMap(([, plan]) => (plan.do === 'raise' ? [plan.ask()] : []))
    const rest = plans.filter(([, plan]) => plan.do !== 'raise')
    const results = await Promise.allSettled([raise(asks), inParallel(rest, box.parallel, act)])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    if (parked) throw new LegStop('parked')
  }
}

async function inParallel(
  plans: readonly (readonly [CallPart, Plan])[],
  most: number,
  act: (call: CallPart, plan: Plan) => Promise<void>,
): Promise<void> {
  const rest = plans.values()
  const workers = Array.from({ length: Math.min(most, plans.length) }, async () => {
    for (const [call, plan] of rest) await act(call, plan)
  })
  const results = await Promise.allSettled(workers)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

function planFor(call: CallPart, box: Toolbox, bench: Bench): Plan {
  const { leg, clock } = bench
  const { state } = leg.thread
  const tool = box.tools().get(call.name)
  if (!tool) return clientCall(call, box, bench) ?? withoutTool(call, bench)
  const given = parseInput(call.input, tool)
  if ('problem' in given) return say(given.problem)

  const place = placeOf(call, bench)
  const { key, effectId } = effectKey(leg.runId, place.messageId, 'call', place.index)
  const record = state.effects.get(effectId)
  const approval = askOf(bench, `call:${call.callId}`)
  const input = approval?.answer?.input ?? given.input
  const digest = callDigest(tool, input)
  const execution: Execution = {
    call,
    tool,
    input,
    intent: {
      effectId,
      effect: 'tool',
      name: tool.name,
      callId: call.callId,
      key,
      digest,
      attempt: (record?.intent.attempt ?? 0) + 1,
      input,
      timeout: tool.timeout ?? defaultToolTimeout,
      idempotent: tool.idempotent ?? false,
      ...(approval && { askId: approval.ask.askId }),
    },
  }
  const done = recorded(record, digest)
  if (done) return say(done.output ?? '', false) // it came back after its leg had ended
  const denied = record ? undefined : denial(call, input, box)
  if (denied) return denied
  // Begun before and without a result now: it may have happened, in full or in part.
  const doubt = record && record.error?.code !== notBegun.code && !tool.idempotent
  const go = (stale = false): Plan =>
    doubt ? { do: 'look', execution, record, stale } : { do: 'run', execution }

  if (approval) return afterAnswer(approval, execution, go, Boolean(doubt))
  if (record) return go() // it was allowed when it was begun
  const verdict = judge(box.policy, { tool, agent: box.agent, input }, state, clock.now())
  if (verdict.decision === 'allow') return go()
  if (verdict.decision === 'deny')
    return say(`This call is not allowed${verdict.reason ? `: ${verdict.reason}` : '.'}`)
  return {
    do: 'raise',
    ask: async () => ({
      askId: bench.newId('ask'),
      kind: 'approval',
      title: sentenceOf(tool, input) ?? `Run ${tool.name}`,
      step: leg.legId,
      key: `call:${call.callId}`,
      tool: tool.name,
      callId: call.callId,
      input,
      digest,
      schema: jsonSchemaOf(tool),
      preview: await previewOf(tool, input, leg.signal),
      deadline: clock.now() + verdict.timeout,
      atTimeout: verdict.atTimeout,
      ...(verdict.audience && { audience: verdict.audience }),
    }),
  }
}

/** A tool that runs in the client: its result is asked of whoever is at the other end. */
function clientCall(call: CallPart, box: Toolbox, bench: Bench): Plan | undefined {
  const { leg, clock } = bench
  const tool = leg.run.options.clientTools?.find(({ name }) => name === call.name)
  if (!tool) return undefined
  const asked = askOf(bench, `call:${call.callId}`)
  if (asked) {
    const { answer } = asked
    if (!answer) return { do: 'wait' }
    if (answer.state === 'answered') return { ...say(asText(answer.value), false), ...idOf(answer) }
    return say(answer.reason ?? 'The client did not answer this call.')
  }
  let input: unknown
  try {
    input = JSON.parse(call.input === '' ? '{}' : call.input)
  } catch {
    return say(`The input of ${call.name} is not valid JSON. Send one JSON object.`)
  }
  const denied = denial(call, input, box)
  if (denied) return denied
  return {
    do: 'raise',
    ask: async () => ({
      askId: bench.newId('ask'),
      kind: 'client_tool',
      title: `Run ${call.name} in the client`,
      step: leg.legId,
      key: `call:${call.callId}`,
      tool: call.name,
      callId: call.callId,
      input,
      deadline: clock.now() + clientToolTimeout,
      atTimeout: 'reject',
    }),
  }
}

/** A call whose arguments a rule forbids: the model hears why, and the journal which rule. */
function denial({ callId, name }: CallPart, input: unknown, { guard }: Toolbox): Plan | undefined {
  const found = guard?.arguments?.(name, input)
  if (!found) return undefined
  const { rule, reason } = found
  const value = { where: 'arguments', rule, reason, callId, tool: name }
  const text = `This call is not allowed: ${reason}`
  return say(text, true, draft('event', { name: 'guardrail', value }))
}

/** Milliseconds a client has; a person may be at the other end of such a tool. */
const clientToolTimeout = 24 * 3_600_000

/** A result keeps the id that the client gave it, so that it is not shown twice. */
const idOf = ({ messageId }: Answer) => (messageId === undefined ? {} : { messageId })

const say = (text: string, failed = true, ...also: Draft[]): Plan & { do: 'say' } => ({
  do: 'say',
  text,
  failed,
  also,
})

function afterAnswer(
  { answer, ask }: AskRecord,
  { intent }: Execution,
  go: (stale?: boolean) => Plan,
  doubt: boolean,
): Plan {
  if (!answer) return { do: 'wait' }
  const reason = answer.reason ? `: ${answer.reason}` : '.'
  switch (answer.state) {
    case 'approved': {
      const stale = intent.digest !== (answer.digest ?? ask.digest)
      // What has begun as it was approved may have happened, whatever the tool is now.
      return stale && !doubt ? say(changed) : go(stale)
    }
    case 'rejected':
      return say(`The user rejected this call${reason}`)
    case 'timeout':
      return say('Nobody approved this call in time. It was not run.')
    case 'answered':
      return say(asText(answer.value), false)
    case 'cancelled':
      return say('This call was cancelled.')
  }
}

const changed = 'The tool changed after this call was approved. It was not run.'

/** A call of a tool that is not there: what has begun may still have happened. */
function withoutTool(call: CallPart, bench: Bench): Plan {
  const gone = `There is no tool named ${call.name}.`
  const { messageId, index } = placeOf(call, bench)
  const { effectId } = effectKey(bench.leg.runId, messageId, 'call', index)
  const record = bench.leg.thread.state.effects.get(effectId)
  if (record?.state === 'done') return say(record.output ?? '', false)
  if (!record || record.error?.code === notBegun.code) return say(gone)
  const intent = { ...record.intent, attempt: record.intent.attempt + 1 }
  const tool: Tool = {
    name: call.name,
    description: '',
    schema: { json: {}, issues: () => [] },
    run: () => Promise.reject(new Error(gone)),
  }
  const execution = { call, tool, input: intent.input, intent }
  return { do: 'look', execution, record, stale: false }
}

/** After a crash: did it happen? Found out by the tool, by what was kept, or by a person. */
async function lookAt(
  { execution, record, stale, cut }: Plan & { do: 'look' },
  call: CallPart,
  box: Toolbox,
  bench: Bench,
): Promise<Plan> {
  const { leg, clock } = bench
  const { tool, input, intent } = execution
  const { effectId, effect, name } = intent
  const about = { effectId, effect, name, callId: call.callId }
  const key = `doubt:${effectId}:${record.intent.attempt}`
  const asked = askOf(bench, key)
  const happened = (output: string): Plan =>
    say(output, false, draft('effect.done', { ...about, output }))
  if (asked) {
    const { answer } = asked
    if (!answer) return { do: 'wait' }
    if (answer.outcome === 'did_not') return stale ? say(changed) : { do: 'run', execution }
    if (answer.outcome === 'happened') return happened(asText(answer.value ?? 'It was done.'))
    const text =
      'The server stopped during this call. Whether it happened is not known; it was skipped.'
    const error = { code: 'tool_failed', message: text }
    return say(text, true, draft('effect.failed', { ...about, error }))
  }
  // An earlier process, or what it called, may still be at it until then.
  const until = lastSign(record, bench) + (record.intent.timeout ?? defaultToolTimeout)
  if (clock.now() < until && !cut?.over) await clock.sleep(until - clock.now(), leg.signal)
  const found = await attempt(async () => await tool.check?.(input, effectId, leg.signal))
  if (found?.happened) return happened(found.output)
  if (found) return stale ? say(changed) : { do: 'run', execution }
  const kept = await box.evidence(effectId).catch(() => undefined)
  const evidence = kept ?? (cut && { error: cut.message })
  return {
    do: 'raise',
    ask: async () => ({
      askId: bench.newId('ask'),
      kind: 'in_doubt',
      title: `Did this happen? ${sentenceOf(tool, input) ?? tool.name}`,
      step: leg.legId,
      key,
      tool: name,
      callId: call.callId,
      effectId,
      input,
      digest: intent.digest,
      ...(evidence !== undefined && { evidence }),
      deadline: clock.now() + 24 * 3_600_000,
      atTimeout: 'reject',
    }),
  }
}

/** When it began, or went on with an answer to what it had asked. */
function lastSign({ at, intent }: EffectRecord, { leg }: Bench): number {
  const { asks } = leg.thread.state
  const answered = leg.run.askIds.map((id) => {
    const { ask, answeredAt } = asks.get(id) ?? {}
    return ask?.live && ask.effectId === intent.effectId ? (answeredAt ?? 0) : 0
  })
  return Math.max(at, ...answered)
}

function askOf({ leg }: Bench, key: string): AskRecord | undefined {
  for (const askId of leg.run.askIds) {
    const record = leg.thread.state.asks.get(askId)
    if (record?.ask.key === key) return record
  }
  return undefined
}

function placeOf(call: CallPart, bench: Bench): { messageId: string; index: number } {
  const known = bench.leg.thread.state.calls.get(call.callId)
  if (known) return known
  const isIt = (one: CallPart) => one.callId === call.callId
  const message = bench.messages.findLast((one) => callsOf(one).some(isIt))
  if (message) return { messageId: message.id, index: callsOf(message).findIndex(isIt) }
  throw new RuntimeError('agent_failed', 'The agent made a call that no message of it holds.')
}

function parseInput(text: string, tool: Tool): { input: unknown } | { problem: string } {
  let value: unknown
  try {
    value = JSON.parse(text === '' ? '{}' : text)
  } catch {
    return { problem: `The input of ${tool.name} is not valid JSON. Send one JSON object.` }
  }
  const read = readInput(tool, value)
  if ('input' in read) return read
  const issues = read.issues.slice(0, 5)
  const list = issues.map(({ path, message }) => `${path.join('.') || 'input'}: ${message}`)
  return { problem: `The input of ${tool.name} is not valid. ${list.join('; ')}` }
}

/** What a tool offers besides running helps to decide; where that fails, one decides without. */
const attempt = <T>(help: () => Promise<T>): Promise<T | undefined> => help().catch(() => undefined)

function sentenceOf(tool: Tool, input: unknown): string | undefined {
  try {
    return tool.describe?.(input)
  } catch {
    return undefined
  }
}

async function previewOf(tool: Tool, input: unknown, signal: AbortSignal): Promise<unknown> {
  if (!tool.preview) return undefined
  const limit = AbortSignal.any([signal, AbortSignal.timeout(2_000)])
  return await attempt(async () => await tool.preview?.(input, limit))
}
