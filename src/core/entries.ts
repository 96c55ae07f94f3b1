import { z } from 'zod'
import { cardSchema } from './card.ts'
import { messageSchema } from './messages.ts'
import { parametersSchema } from './model.ts'

/**
 * The journal's vocabulary. An entry is an envelope that is always readable and a body that is
 * bytes. What happened on a thread is the sequence of its entries and nothing else.
 */
const id = z.string().min(1)
const json = z.unknown().optional()
const when = z.number().int().nonnegative()

export const failureSchema = z.object({
  code: z.string(),
  message: z.string(),
  retryable: z.boolean().optional(),
})

/** What a run was asked to do beyond its message; kept so that every later leg has it too. */
export const runOptionsSchema = z.object({
  instructions: z.array(z.string()).optional(),
  clientTools: z
    .array(z.object({ name: z.string(), description: z.string().optional(), parameters: json }))
    .optional(),
  forwarded: z.record(z.string(), json).optional(),
  /** Headers of the client's request that are meant for the agent. */
  headers: z.record(z.string(), z.string()).optional(),
  /** The client's wishes for the model calls; what the operator fixed stays fixed. */
  parameters: parametersSchema.optional(),
  /** The client brings its own key for the model; the key itself is never kept. */
  clientKey: z.boolean().optional(),
  /** Nobody is there to be asked for more budget: the operator's rule decides. */
  unattended: z.boolean().optional(),
})

/** What one call used, as far as its provider said; cached and reasoning tokens are among the others. */
export const usageSchema = z.object({
  inputTokens: z.number().optional(),
  outputTokens: z.number().optional(),
  cachedInputTokens: z.number().optional(),
  reasoningTokens: z.number().optional(),
  /** Money by the operator's price table, at the time of the call. */
  cost: z.number().optional(),
})

export const askKinds = ['approval', 'budget', 'input', 'client_tool', 'in_doubt'] as const
export const askStates = [
  'pending',
  'approved',
  'rejected',
  'answered',
  'timeout',
  'cancelled',
] as const

/** What a person may say of an effect in doubt; `check`: let its tool look again. */
export const outcomes = ['happened', 'did_not', 'skip', 'check'] as const

export const askSchema = z.object({
  askId: id,
  kind: z.enum(askKinds),
  /** One sentence in plain words, made by the server from the real arguments. */
  title: z.string(),
  /** The agent step that waits: the asks of one step are settled together. */
  step: z.string(),
  /** Names the asks of one step apart; the agent that asks again gets the same ask. */
  key: z.string(),
  tool: z.string().optional(),
  callId: z.string().optional(),
  effectId: z.string().optional(),
  /** Canonical arguments, and the digest of tool, schema and arguments (I11). */
  input: json,
  digest: z.string().optional(),
  /** The arguments are as the model sent them: the schema is applied when the call runs. See `ParsedInput`. */
  raw: z.boolean().optional(),
  /** State that the card's preview was made from. Part of the digest; see `Preview`. */
  precondition: z.string().optional(),
  /** The approved ask that this one replaces, because its precondition did not hold any more. */
  replaces: id.optional(),
  /** JSON Schema that an edited input, or an answer, must satisfy. */
  schema: json,
  /** The agent that asks goes on with what is sent back, as far as the schema lets it be changed. */
  editable: z.boolean().optional(),
  /** An edit contains only the fields of `input.recommendation` that change. See `approvedInput`. */
  partialEdit: z.boolean().optional(),
  preview: json,
  /** All of it made ready for the person who decides: nothing on it is as the model wrote it. */
  card: cardSchema.optional(),
  /** The rule of the policy that asks, by its name or its place. */
  rule: z.string().optional(),
  ruleDigest: z.string().optional(),
  /** An effect in doubt: its tool can look whether it happened. */
  checks: z.boolean().optional(),
  /** What the person is given to judge by; for an effect in doubt, an outcome found elsewhere. */
  evidence: json,
  deadline: when,
  atTimeout: z.enum(['reject', 'approve', 'stop']),
  /** Asked in the middle of a call, which goes on with the answer: its leg does not end. */
  live: z.boolean().optional(),
  /** Of a sub-agent: the way to it, and its name. */
  path: z.string().optional(),
  agent: z.string().optional(),
  /** All who may decide: `owner`, and names of roles. Absent: the owner, and approvers of the tenant. */
  audience: z.array(z.string()).optional(),
})

export const answerSchema = z.object({
  askId: id,
  state: z.enum(askStates).exclude(['pending']),
  reason: z.string().optional(),
  /** The arguments to run with when the person changed them, and their digest. */
  input: json,
  digest: z.string().optional(),
  /** See the ask. */
  raw: z.boolean().optional(),
  /** The card of the changed arguments. */
  card: cardSchema.optional(),
  value: json,
  /** What the client calls the message that brought the answer. */
  messageId: z.string().optional(),
  /** Holds for further calls of the tool: for the chat, or for so long. */
  remember: z.union([z.boolean(), z.object({ minutes: z.number() })]).optional(),
  stop: z.boolean().optional(),
  /** Effects in doubt: what the person says happened. */
  outcome: z.enum(outcomes).optional(),
})

export const effectKinds = ['model', 'tool', 'remote'] as const

const effect = {
  effectId: id,
  effect: z.enum(effectKinds),
  name: z.string(),
  callId: z.string().optional(),
}

export const bodies = {
  'thread.created': z.object({ tenant: id, owner: id, clientId: id, agent: id }),
  'thread.head': z.object({ runId: id.nullable() }),
  'thread.renamed': z.object({ title: z.string() }),
  'thread.archived': z.object({ archived: z.boolean() }),

  /** A leg is to be driven. `behind`: another run has the thread, this one waits in line. */
  'run.queued': z.object({
    agent: id,
    why: z.enum(['start', 'next', 'answers', 'recover', 'handover', 'retry']),
    behind: z.boolean().optional(),
    /** An explicit place in the tree (an edit); without it a run follows the head. */
    branch: z.object({ parentRunId: id.nullable(), replaces: id.optional() }).optional(),
    options: runOptionsSchema.optional(),
    /** What the client calls the request that this leg answers; a label, never a key. */
    request: z.string().optional(),
  }),
  'run.started': z.object({ leg: z.number().int().positive(), parentRunId: id.nullable() }),
  'run.waiting': z.object({ askIds: z.array(id) }),
  'run.cancelling': z.object({ reason: z.string().optional() }),
  'run.completed': z.object({}),
  'run.failed': z.object({ error: failureSchema }),
  'run.cancelled': z.object({ reason: z.string().optional() }),

  'message.added': z.object({
    message: messageSchema,
    for: z.enum(['model', 'client', 'both']),
    /** Said by a sub-agent: no part of what the run's own agent is told. */
    path: z.string().optional(),
  }),
  'message.retracted': z.object({ ids: z.array(id), why: z.string() }),

  /** `hook`: somebody outside wants to be told of it, or also of how it ends. */
  'ask.raised': z.object({ ask: askSchema, hook: z.enum(['raised', 'both']).optional() }),
  'ask.answered': answerSchema,

  /** Durable before it is tried to tell them. Unless it is done by then, `next` is the next time. */
  'hook.tried': z.object({
    askId: id,
    about: z.enum(['raised', 'settled']),
    attempt: z.number().int().positive(),
    next: when,
  }),
  'hook.done': z.object({
    askId: id,
    about: z.enum(['raised', 'settled']),
    outcome: z.enum(['delivered', 'given_up']),
  }),

  /** Durable before the effect starts. `attempt` counts from 1; each one is charged. */
  'effect.intended': z.object({
    ...effect,
    key: z.string(),
    digest: z.string(),
    attempt: z.number().int().positive(),
    /** The way to the sub-agent that wants it. */
    path: z.string().optional(),
    /** The message that this model call writes; retracted when it is cut. */
    messageId: z.string().optional(),
    askId: z.string().optional(),
    /** Tools: the rule that let it begin without asking, and the grant if it was one. */
    rule: z.string().optional(),
    grantId: z.string().optional(),
    input: json,
    /** Tools: see the ask. */
    raw: z.boolean().optional(),
    /** Milliseconds after which the effect cannot still be going on. */
    timeout: z.number().optional(),
    idempotent: z.boolean().optional(),
    /** Tools: what it may touch, as it said when it began. */
    access: z.enum(['read', 'write', 'execute']).optional(),
    /** The most that it may use, where that is limited: settled when it is known. */
    reserve: z.object({ tokens: z.number().optional(), money: z.number().optional() }).optional(),
    /** The one call that a spent budget leaves to a run, to sum up. */
    last: z.boolean().optional(),
  }),
  'effect.done': z.object({
    ...effect,
    messageId: z.string().optional(),
    output: z.string().optional(),
    usage: usageSchema.optional(),
    /** Events of a remote leg that its driver could not record. The next leg records them. */
    unrecorded: z.array(json).optional(),
  }),
  'effect.failed': z.object({
    ...effect,
    error: failureSchema,
    /** What was used before it failed: providers charge for that too. */
    usage: usageSchema.optional(),
    /** Nothing came back: what was reserved is free again. */
    unanswered: z.boolean().optional(),
  }),
  'effect.unknown': z.object({
    ...effect,
    /** Tools: the call exceeded its timeout. What it had requested may go on. */
    timedOut: z.boolean().optional(),
  }),

  'governor.set': z.object({
    isHitlEnabled: z.boolean().optional(),
    actionLimit: z.number().int().nonnegative().optional(),
    resetCounter: z.boolean().optional(),
    /** `null` lifts the limit. */
    tokenLimit: z.number().nonnegative().nullable().optional(),
    moneyLimit: z.number().nonnegative().nullable().optional(),
    /** The run that goes on with the cheaper model, until the budget is set again. */
    cheaper: id.optional(),
    /** The run that may make one more call, to sum up. */
    last: id.optional(),
    /** The run that nobody attends and that was given the same budget once more. */
    extended: id.optional(),
  }),
  /** Model calls that a remote agent says it made: counted on top of its leg. */
  'governor.metered': z.object({ effectId: id, calls: z.number().int().positive() }),
  'grant.given': z.object({
    grantId: id,
    tool: id,
    /** Digest of the tool's schema: another schema, no grant. */
    schema: z.string(),
    /** The MCP server that it is of, and where it comes from. */
    server: z.string().optional(),
    origin: z.string().optional(),
    /** Who was allowed to. Older grants do not say, and let nothing pass. */
    agent: z.string().optional(),
    /** The rule that asked, and whom: another rule, or other people, no grant. */
    rule: z.string().optional(),
    ruleDigest: z.string().optional(),
    audience: z.array(z.string()).optional(),
    until: when.optional(),
    askId: id.optional(),
  }),
  'grant.revoked': z.object({ grantId: id }),
  'state.patched': z.object({ agent: id, value: json }),
  /** What an agent with checkpoints of its own needs to go on from this one. */
  'checkpoint.kept': z.object({ agent: id, checkpointId: id, data: json }),

  /** A recorded request: the same key again gets `ref`, another digest is refused. */
  'key.used': z.object({ key: id, digest: z.string(), ref: z.string() }),
  /** `step.started`, `step.finished`, `activity`, `retry`, `fallback`, `context`, `policy`, or what an agent calls it. */
  event: z.object({ name: z.string(), value: json }),
} as const

export type Kind = keyof typeof bodies
export type Body<K extends Kind> = z.infer<(typeof bodies)[K]>
export type Ask = z.infer<typeof askSchema>
export type Answer = z.infer<typeof answerSchema>
export type AskState = (typeof askStates)[number]
export type AskKind = (typeof askKinds)[number]
export type Failure = z.infer<typeof failureSchema>
export type RunOptions = z.infer<typeof runOptionsSchema>
export type Usage = z.infer<typeof usageSchema>

export interface Actor {
  type: 'user' | 'agent' | 'system'
  id: string
  wire?: string
}

/** All that a store and an operator can read, whatever happens to the body. */
export interface Envelope {
  v: 1
  id: string
  threadId: string
  seq: number
  tx: string
  /** Milliseconds since 1970, by the clock of the server that wrote it. */
  at: number
  /** The driver's fence; 0 for a command. */
  fence: number
  runId?: string
  legId?: string
  kind: Kind
  actor: Actor
  cause?: string
  keyId?: string
  /** SHA-256 of the body's bytes. */
  digest: string
  /** Binds it to all entries before it: see audit.ts. */
  link?: string
}

/** An entry as a store keeps it: the body is JSON text, never parsed and written again. */
export interface Entry extends Envelope {
  body: string
}

/** An entry with its body read. */
export type Known<K extends Kind = Kind> = {
  [P in K]: Omit<Envelope, 'kind'> & { kind: P; body: Body<P> }
}[K]

/** What a caller writes; the journal adds the rest. */
export type Draft<K extends Kind = Kind> = {
  [P in K]: { kind: P; body: Body<P>; runId?: string; legId?: string }
}[K]

export function draft<K extends Kind>(
  kind: K,
  body: Body<K>,
  at: { runId?: string; legId?: string } = {},
): Draft<K> {
  return { kind, body, ...at } as unknown as Draft<K>
}

const texts = new WeakMap<object, string>()

/** Keeps the text of a body until it is appended. Throws if the body cannot be serialized. */
export function writeDown({ body }: Draft, text = JSON.stringify(body)): void {
  texts.set(body, text)
}

/** The text of a body, as it was when it was written down. */
export function textOfBody(
  draft: Draft,
  serialize = ({ body }: Draft): string => JSON.stringify(body),
): string {
  const text = texts.get(draft.body) ?? serialize(draft)
  texts.delete(draft.body) // bodies live on in what is folded
  return text
}

/** Reads a stored body. Entries of kinds and fields we no longer know still read: see docs/journal.md. */
export function read(entry: Entry): Known {
  return { ...entry, body: JSON.parse(entry.body) } as Known
}
