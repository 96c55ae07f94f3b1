import { atOnce } from '../lib/at-once.ts'
import { canonical } from '../lib/canonical.ts'
import { approvalOf, askUnder } from './asked.ts'
import type { Bench } from './effects.ts'
import { effectKey, recorded } from './effects.ts'
import { type Answer, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { type Execution, notBegun } from './execute.ts'
import { grantFor } from './grants.ts'
import { parseInput, settledInput } from './inputs.ts'
import { asText, type CallPart, callsOf } from './messages.ts'
import { ambiguous, changed, type Plan, placeOf, say, type Toolbox, unmoved } from './plan.ts'
import { callDigest, judge, type Verdict } from './policy.ts'
import { readable } from './policy-rules.ts'
import { showCall } from './showing.ts'
import type { AskRecord, EffectRecord } from './state.ts'
import { defaultToolTimeout, jsonSchemaOf, type Tool } from './tool.ts'

/** What is to be done with a call: by the policy, the answers of people, and the ledger. */
export function planFor(call: CallPart, box: Toolbox, bench: Bench): Plan {
  const { leg, clock } = bench
  const { state } = leg.thread
  const tool = box.tools().get(call.name)
  const place = placeOf(call, bench)
  const { key, effectId } = effectKey(leg.runId, place.messageId, 'call', place.index)
  const record = state.effects.get(effectId)
  const outcome = record && knownOutcome(record, call, bench)
  if (outcome) return outcome
  const begun = record && record.error?.code !== notBegun.code ? record : undefined
  if (!tool && begun) return notRepeatable(call, begun, noTool(call))
  if (!tool) return clientCall(call, box, bench) ?? say(noTool(call))
  /** Returns the plan for a call whose input does not fit the schema, which may have changed since the call began. */
  const unfit = (problem: string) => (begun ? notRepeatable(call, begun, problem) : say(problem))
  const given = parseInput(call.input, tool, bench)
  if ('problem' in given) return unfit(given.problem)

  const approval = approvalOf(bench, call.callId)
  const settled = settledInput(given, tool, { approval, record }, bench)
  if ('problem' in settled) return unfit(settled.problem)
  const { input, shown, raw, digest, stale } = settled
  const execution: Execution = {
    call,
    tool,
    input,
    shown,
    ...(raw && { raw }),
    intent: {
      effectId,
      effect: 'tool',
      name: tool.name,
      callId: call.callId,
      key,
      digest,
      attempt: (record?.intent.attempt ?? 0) + 1,
      input: shown,
      ...(raw && { raw }),
      timeout: tool.timeout ?? defaultToolTimeout,
      idempotent: tool.idempotent ?? false,
      ...(tool.access && { access: tool.access }),
      ...(approval && { askId: approval.ask.askId }),
    },
    ...(record && { seen: record.state }),
  }
  const done = recorded(record, digest) // the agent makes another call under the same id
  if (done) return say(done.output ?? '', false)

  // Begun before and without a result now: it may have happened, in full or in part.
  const doubt = record && record.error?.code !== notBegun.code && !tool.idempotent
  /** Settles the earlier attempt of a call that is not run again. */
  const refuse = (plan: Plan): Plan =>
    record && plan.do === 'say' ? withoutRepeat(plan, record, call) : plan
  /** Applies guardrails, policy, answers and grants as they are now, also to a call that was begun before. */
  const permit = (): Plan => {
    const denied = denial(call, shown, box) ?? (raw && denial(call, readable(input, shown), box))
    const wanted = !approval || approval.answer?.state === 'approved'
    if (denied && wanted) return refuse(denied)
    const verdict = judge(box.policy, { tool, agent: box.agent, input, shown })
    // A deny rule applies also to a call that a person approved before.
    if (verdict.decision === 'deny' && wanted) return refuse(refused(call, verdict))
    // An idempotent tool may itself have made the change before the crash.
    const repeats = record && !doubt && record.error?.code !== notBegun.code
    if (approval && tool.preview && !repeats) {
      const { precondition } = approval.ask
      if (precondition !== undefined) execution.precondition = precondition
      execution.askAgain = () =>
        approvalAsk(execution, place.messageId, verdict, box, bench, approval)
    }
    if (approval) return refuse(afterAnswer(approval, execution, stale))
    const grant = grantFor(state, { tool, agent: box.agent, verdict }, clock.now())
    if (verdict.decision !== 'allow' && !grant)
      return {
        do: 'raise',
        ask: () => approvalAsk(execution, place.messageId, verdict, box, bench),
      }
    execution.intent.rule = verdict.rule
    if (grant) execution.intent.grantId = grant.grantId
    return { do: 'run', execution }
  }
  const approved = !approval || approval.answer?.state === 'approved'
  return doubt && approved ? { do: 'look', execution, record, again: permit } : permit()
}

/**
 * The result of a call whose outcome was recorded after its leg had ended, whatever the tool and its schema are now.
 * Returns undefined if the outcome is not known, or if the agent now makes another call under the same id.
 */
function knownOutcome(record: EffectRecord, call: CallPart, bench: Bench): Plan | undefined {
  if (isReported(record)) return say(record.error?.message ?? '')
  if (record.state !== 'done' || !isAsWritten(call, bench)) return undefined
  return say(record.output ?? '', false)
}

/** Whether a call is the one that its message holds. */
function isAsWritten(call: CallPart, bench: Bench): boolean {
  const { messageId, index } = placeOf(call, bench)
  const message =
    bench.messages.find(({ id }) => id === messageId) ??
    bench.leg.thread.state.messages.get(messageId)?.message
  const written = message && callsOf(message)[index]
  if (!written || written.name !== call.name) return false
  return written.input === call.input || sameText(written.input, call.input)
}

/** Whether two texts are the same JSON. */
const sameText = (a: string, b: string): boolean =>
  atOnce(() => canonical(JSON.parse(a)) === canonical(JSON.parse(b))) === true

/** Whether the tool itself reported a failure, after its leg could no longer record it. */
const isReported = ({ state, error }: EffectRecord): boolean =>
  state === 'failed' && error?.code !== notBegun.code && error?.code !== 'cancelled'

/** A refusal that also settles an earlier attempt: nobody will find out any more what became of it. */
function withoutRepeat(
  plan: Plan & { do: 'say' },
  { intent, state, error }: EffectRecord,
  { callId }: CallPart,
): Plan {
  if (error?.code === notBegun.code) return plan
  const { effectId, effect, name } = intent
  const text = `${plan.text} It had been started before; it was not run again.`
  const failed = draft('effect.failed', {
    ...{ effectId, effect, name, callId },
    error: { code: 'tool_failed', message: text },
  })
  return { ...plan, text, also: [...plan.also, failed], expect: unmoved(effectId, state) }
}

async function approvalAsk(
  { call, tool, input, shown, raw }: Execution,
  messageId: string,
  { rule, ruleDigest, timeout, atTimeout, audience }: Verdict,
  { agent }: Toolbox,
  bench: Bench,
  before?: AskRecord,
) {
  const again = before !== undefined
  const { card, precondition } = await showCall(
    { tool, input, shown, agent, messageId, again },
    bench,
  )
  return {
    askId: bench.newId('ask'),
    kind: 'approval' as const,
    title: card.title,
    step: bench.leg.legId,
    key: `call:${call.callId}`,
    tool: tool.name,
    callId: call.callId,
    input: shown,
    ...(raw && { raw }),
    digest: callDigest(tool, shown, { raw, precondition }),
    ...(precondition !== undefined && { precondition }),
    ...(before && { replaces: before.ask.askId }),
    schema: jsonSchemaOf(tool),
    card,
    rule,
    ruleDigest,
    deadline: bench.clock.now() + timeout,
    atTimeout,
    ...(audience && { audience: [...audience] }),
  }
}

/** A tool that runs in the client: its result is asked of whoever is at the other end. */
function clientCall(call: CallPart, box: Toolbox, bench: Bench): Plan | undefined {
  const { leg, clock } = bench
  const tool = leg.run.options.clientTools?.find(({ name }) => name === call.name)
  if (!tool) return undefined
  const asked = askUnder(bench, `call:${call.callId}`)
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

/** The policy says no: the model hears why, the journal which rule. */
function refused({ callId, name }: CallPart, { rule, reason }: Verdict): Plan {
  const why = reason === undefined ? {} : { reason }
  const value = { decision: 'deny', rule, tool: name, callId, ...why }
  const text = `This call is not allowed${reason === undefined ? '.' : `: ${reason}`}`
  return say(text, true, draft('event', { name: 'policy', value }))
}

/** Milliseconds a client has; a person may be at the other end of such a tool. */
const clientToolTimeout = 24 * 3_600_000

/** A result keeps the id that the client gave it, so that it is not shown twice. */
const idOf = ({ messageId }: Answer) => (messageId === undefined ? {} : { messageId })

function afterAnswer({ answer, ask }: AskRecord, execution: Execution, stale = false): Plan {
  if (!answer) return { do: 'wait' }
  const reason = answer.reason ? `: ${answer.reason}` : '.'
  switch (answer.state) {
    case 'approved': {
      if (stale) return say(ambiguous)
      const differs = execution.intent.digest !== (answer.digest ?? ask.digest)
      return differs ? say(changed) : { do: 'run', execution }
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

const noTool = ({ name }: CallPart) => `There is no tool named ${name}.`

/**
 * A call that was begun and cannot be made again, because its tool is gone or its input does not fit the schema any
 * more: it may still have happened.
 */
function notRepeatable(call: CallPart, record: EffectRecord, problem: string): Plan {
  if (record.state === 'done') throw new RuntimeError('agent_not_deterministic')
  const intent = { ...record.intent, attempt: record.intent.attempt + 1 }
  const tool: Tool = {
    name: call.name,
    description: '',
    schema: { json: {}, issues: () => [] },
    run: () => Promise.reject(new Error(problem)),
  }
  const { input } = intent
  const execution = { call, tool, input, shown: input, intent, seen: record.state }
  const again = () => withoutRepeat(say(problem), record, call)
  return { do: 'look', execution, record, again }
}
