import type { Entry, Payload } from './multipart.ts'

/** What a response said, put together, and what was wrong with how it said it. */
export interface Told {
  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
  response: any
  wrong: string[]
  whole: boolean
}

type Thing = Record<string, unknown> & { __typename?: string }
type Place = (string | number)[]

const root = 'generateCopilotResponse'

/**
 * The algebra of the contract (4.2) in its stricter order (4.5): item, its pieces, its status, …,
 * the response's status, the end. What was sent may be overwritten only to take it back: by empty
 * strings, and then its status is Failed.
 */
export function tell(payloads: readonly Payload[]): Told {
  const wrong: string[] = []
  const [first, ...later] = payloads
  const response = structuredClone(first?.data?.[root])
  if (first === undefined) return { response, wrong, whole: false }
  if (!response) return { response, wrong: ['the first payload has no response'], whole: false }
  const state: State = { response, wrong, taken: new Set(), done: false }
  begin(first, state)
  for (const payload of later) {
    const { hasNext, incremental, ...strange } = payload
    if (Object.keys(strange).length > 0) wrong.push(`a payload has ${Object.keys(strange)}`)
    if (state.done) wrong.push('a payload comes after hasNext:false')
    if (typeof hasNext !== 'boolean') wrong.push('a payload says not whether another follows')
    if (incremental?.length === 0) wrong.push('a payload has an empty list of entries')
    for (const entry of incremental ?? []) apply(entry, state)
    state.done ||= hasNext === false
  }
  if (state.done) end(state)
  return { response, wrong, whole: state.done }
}

interface State {
  response: Thing
  wrong: string[]
  /** Places of messages of which something was taken back. */
  taken: Set<Thing>
  done: boolean
}

function begin({ data, hasNext, ...strange }: Payload, { response, wrong }: State): void {
  if (Object.keys(strange).length > 0) wrong.push(`the first payload has ${Object.keys(strange)}`)
  if (Object.keys(data).length > 1) wrong.push('the first payload has more than the response')
  if (hasNext !== true) wrong.push('the first payload is the last')
  for (const list of ['messages', 'metaEvents'])
    if (!isEmpty(response[list])) wrong.push(`the first payload has ${list}`)
  if ('status' in response) wrong.push('the first payload has the status')
  if (typeof response.threadId !== 'string') wrong.push('there is no threadId')
}

const isEmpty = (list: unknown) => Array.isArray(list) && list.length === 0

function apply(entry: Entry, state: State): void {
  const { path, items, data, ...strange } = entry
  const { wrong, response } = state
  const about = path?.join('.')
  if (Object.keys(strange).length > 0) wrong.push(`${about} has ${Object.keys(strange)}`)
  if ((items === undefined) === (data === undefined)) wrong.push(`${about}: items or data`)
  if (path?.[0] !== root) return void wrong.push(`${about} is no path of ours`)
  if ('status' in response) wrong.push(`${about} comes after the response's status`)
  if (items) put(path.slice(1), items, state)
  else merge(path.slice(1), data, state)
}

function put(path: Place, items: unknown[], state: State): void {
  const { wrong, taken, response } = state
  const about = path.join('.')
  const index = path.at(-1)
  const list = find(response, path.slice(0, -1))
  const owner = find(response, path.slice(0, -2)) as Thing | undefined
  if (!Array.isArray(list) || typeof index !== 'number' || !owner)
    return void wrong.push(`${about} is no place in a list that was sent`)
  if (items.length === 0) wrong.push(`${about} has no items`)
  if (index > list.length) wrong.push(`${about} leaves a gap after ${list.length}`)
  if (owner !== response && 'status' in owner) wrong.push(`${about} comes after its status`)
  for (const [i, item] of items.entries()) {
    const at = index + i
    if (at < list.length) {
      if (item !== '') wrong.push(`${about} is written over with ${JSON.stringify(item)}`)
      taken.add(owner)
    }
    if (owner === response) enter(item as Thing, list as Thing[], String(path[0]), state)
    else if (typeof item !== 'string') wrong.push(`${about} is no text`)
    list[at] = structuredClone(item)
  }
}

/** A new message, or a new meta event. */
function enter(item: Thing, list: Thing[], name: string, { wrong }: State): void {
  const type = String(item?.__typename ?? item?.name) // an event has its type for a name
  const fields = (name === 'messages' ? messages : metaEvents)[type]
  if (!fields) return void wrong.push(`${name} has a ${type}`)
  check(item, fields, type, wrong)
  if (name === 'messages' && list.some(({ id }) => id === item.id))
    wrong.push(`${type} ${item.id} comes twice`)
}

function merge(path: Place, data: Thing, state: State): void {
  const { wrong, taken, response } = state
  const about = path.join('.') || 'the response'
  const thing = find(response, path) as Thing | undefined
  if (!thing || typeof thing !== 'object') return void wrong.push(`${about} was not sent before`)
  const { status, __typename, ...more } = data as { status?: Thing; __typename?: string }
  const { name, ...strange } = more as { name?: string }
  if (Object.keys(strange).length > 0) wrong.push(`${about} is given ${Object.keys(strange)}`)
  if (__typename !== undefined && __typename !== thing.__typename)
    wrong.push(`${about} is a ${thing.__typename} and not a ${__typename}`)
  if (!status) return void wrong.push(`${about} is given no status`)
  // A call that is taken back loses its name too: React runs also what has failed.
  if (name !== undefined && (name !== '' || status.code !== 'Failed'))
    wrong.push(`${about} is given the name ${name}`)
  if ('status' in thing) wrong.push(`${about} is given a second status`)
  const kind = thing === response ? 'ResponseStatus' : 'MessageStatus'
  judgeStatus(status, kind, about, wrong)
  if (taken.has(thing)) {
    if (status.code !== 'Failed') wrong.push(`${about} was taken back and is ${status.code}`)
    const pieces = (thing.content ?? thing.arguments) as string[]
    if (pieces.join('') !== '') wrong.push(`${about} was taken back in part`)
    if ('arguments' in thing && name !== '') wrong.push(`${about} was taken back and has a name`)
  }
  if (thing === response) {
    for (const { id, status } of withStatus(response))
      if (!status) wrong.push(`${id} has no status when the response has its own`)
  }
  thing.status = structuredClone(status)
  if (name !== undefined) thing.name = name
}

function withStatus(response: Thing): Thing[] {
  const events = (response.metaEvents ?? []) as { data?: { messages?: Thing[] } }[]
  return [...(response.messages as Thing[]), ...events.flatMap(({ data }) => data?.messages ?? [])]
}

function end({ response, wrong }: State): void {
  if (!('status' in response)) wrong.push('the response ends without a status')
}

function judgeStatus(status: Thing, kind: string, about: string, wrong: string[]): void {
  const { code, __typename, reason, details, ...strange } = status
  if (code !== 'Success' && code !== 'Failed') wrong.push(`${about} ends ${code}`)
  if (__typename !== undefined && __typename !== `${code}${kind}`)
    wrong.push(`${about} has a ${__typename} of ${code}`)
  if (Object.keys(strange).length > 0) wrong.push(`${about}.status has ${Object.keys(strange)}`)
  if (code !== 'Failed') return
  if (kind === 'MessageStatus') {
    if (typeof reason !== 'string' || reason === '') wrong.push(`${about} fails for no reason`)
    return
  }
  const told = (details ?? {}) as Record<string, unknown>
  if (!reasons.has(String(reason))) wrong.push(`${about} fails for ${reason}`)
  if (reason === 'UNKNOWN_ERROR') {
    if (typeof told.description !== 'string') wrong.push(`${about} does not say what happened`)
    const { code: known } = (told.originalError ?? {}) as { code?: string }
    if (!codes.has(String(known))) wrong.push(`${about} fails with the code ${known}`)
  }
  if (reason === 'GUARDRAILS_VALIDATION_FAILED' && typeof told.guardrailsReason !== 'string')
    wrong.push(`${about} does not say what the guardrails said`)
}

/** All that React's error handler can take; any other makes it throw. */
export const codes = new Set([
  ...['NETWORK_ERROR', 'NOT_FOUND', 'AGENT_NOT_FOUND', 'API_NOT_FOUND'],
  ...['REMOTE_ENDPOINT_NOT_FOUND', 'AUTHENTICATION_ERROR', 'MISUSE', 'UNKNOWN'],
  ...['VERSION_MISMATCH', 'CONFIGURATION_ERROR', 'MISSING_PUBLIC_API_KEY_ERROR'],
  'UPGRADE_REQUIRED_ERROR',
])

const reasons = new Set([
  ...['GUARDRAILS_VALIDATION_FAILED', 'MESSAGE_STREAM_INTERRUPTED', 'UNKNOWN_ERROR'],
])

type Check = (value: unknown) => boolean
const text: Check = (value) => typeof value === 'string'
const maybe: Check = (value) => value === null || text(value)
const flag: Check = (value) => typeof value === 'boolean'
const assistant: Check = (value) => value === 'assistant'
/** A page that lacks what another said is told it. */
const speaker: Check = (value) => value === 'assistant' || value === 'user'
const object: Check = (value) => text(value) && isObject(parse(value as string))
const date: Check = (value) => /^\d{4}(-\d\d){2}T\d\d(:\d\d){2}\.\d{3}Z$/.test(String(value))

const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

const base = { id: text, createdAt: date }
const messages: Record<string, Record<string, Check>> = {
  TextMessageOutput: { ...base, content: isEmpty, role: speaker, parentMessageId: maybe },
  ActionExecutionMessageOutput: { ...base, name: text, arguments: isEmpty, parentMessageId: maybe },
  ResultMessageOutput: { ...base, result: text, actionExecutionId: text, actionName: text },
  AgentStateMessageOutput: {
    ...{ ...base, threadId: text, agentName: text, nodeName: text, runId: text },
    ...{ state: object, running: flag, active: flag, role: assistant },
  },
}
const metaEvents: Record<string, Record<string, Check>> = {
  LangGraphInterruptEvent: {
    type: (value) => value === 'MetaEvent',
    name: (value) => value === 'LangGraphInterruptEvent',
    value: text,
  },
  CopilotKitLangGraphInterruptEvent: {
    type: (value) => value === 'MetaEvent',
    name: (value) => value === 'CopilotKitLangGraphInterruptEvent',
    data: (value) => {
      const { value: asked, messages: brought } = value as Thing
      return text(asked) && Array.isArray(brought) && !brought.some((one) => 'status' in one)
    },
  },
}

/** Exactly these fields: the client's document asks for no others. */
function check(item: Thing, fields: Record<string, Check>, type: string, wrong: string[]): void {
  for (const [field, fits] of Object.entries(fields))
    if (!(field in item) || !fits(item[field]))
      wrong.push(`${type}.${field} is ${JSON.stringify(item[field])}`)
  for (const field of Object.keys(item))
    if (field !== '__typename' && !(field in fields)) wrong.push(`${type} has ${field}`)
}

function find(from: unknown, path: Place): unknown {
  let thing = from
  for (const key of path) thing = (thing as Record<string | number, unknown> | undefined)?.[key]
  return thing
}
