import { askUnder } from './asked.ts'
import type { Bench } from './effects.ts'
import { effectKey, recorded } from './effects.ts'
import { type Answer, draft } from './entries.ts'
import { type Execution, notBegun } from './execute.ts'
import { grantFor } from './grants.ts'
import { parseInput, settledInput } from './inputs.ts'
import { asText, type CallPart } from './messages.ts'
import { changed, type Plan, placeOf, say, type Toolbox } from './plan.ts'
import { callDigest, judge, type Verdict } from './policy.ts'
import { showCall } from './showing.ts'
import type { AskRecord } from './state.ts'
import { defaultToolTimeout, jsonSchemaOf, type Tool } from './tool.ts'

/** What is to be done with a call: by the policy, the answers of people, and the ledger. */
export function planFor(call: CallPart, box: Toolbox, bench: Bench): Plan {
  const { leg, clock } = bench
  const { state } = leg.thread
  const tool = box.tools().get(call.name)
  if (!tool) return clientCall(call, box, bench) ?? withoutTool(call, bench)
  const given = parseInput(call.input, tool, bench)
  if ('problem' in given) return say(given.problem)

  const place = placeOf(call, bench)
  const { key, effectId } = effectKey(leg.runId, place.messageId, 'call', place.index)
  const record = state.effects.get(effectId)
  const approval = askUnder(bench, `call:${call.callId}`)
  const input = settledInput(given.input, tool, approval, record)
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
      ...(tool.access && { access: tool.access }),
      ...(approval && { askId: approval.ask.askId }),
      ...(record?.intent.rule !== undefined && { rule: record.intent.rule }),
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

  if (record && !approval) return go() // it was allowed when it was begun
  const verdict = judge(box.policy, { tool, agent: box.agent, input })
  // What is denied now is not done, whoever approved it before.
  const wanted = !approval || approval.answer?.state === 'approved'
  if (verdict.decision === 'deny' && !record && wanted) return refused(call, verdict)
  if (approval) return afterAnswer(approval, execution, go, Boolean(doubt))
  const grant = grantFor(state, { tool, agent: box.agent, verdict }, clock.now())
  if (verdict.decision === 'allow' || grant) {
    execution.intent.rule = verdict.rule
    if (grant) execution.intent.grantId = grant.grantId
    return go()
  }
  return { do: 'raise', ask: () => approvalAsk(execution, place.messageId, verdict, box, bench) }
}

async function approvalAsk(
  { call, tool, input, intent }: Execution,
  messageId: string,
  { rule, ruleDigest, timeout, atTimeout, audience }: Verdict,
  { agent }: Toolbox,
  bench: Bench,
) {
  const card = await showCall({ tool, input, agent, messageId }, bench)
  return {
    askId: bench.newId('ask'),
    kind: 'approval' as const,
    title: card.title,
    step: bench.leg.legId,
    key: `call:${call.callId}`,
    tool: tool.name,
    callId: call.callId,
    input,
    digest: intent.digest,
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
