/** Fields of each kind of message: `?` may be absent or null. */
const kinds: Record<string, Record<string, string>> = {
  textMessage: { content: 'string', role: 'role', parentMessageId: 'string?' },
  actionExecutionMessage: {
    name: 'string',
    arguments: 'string',
    parentMessageId: 'string?',
    scope: 'string?',
  },
  resultMessage: {
    actionExecutionId: 'string',
    actionName: 'string',
    result: 'string',
    parentMessageId: 'string?',
  },
  agentStateMessage: {
    threadId: 'string',
    agentName: 'string',
    nodeName: 'string',
    runId: 'string',
    role: 'role',
    state: 'string',
    running: 'boolean',
    active: 'boolean',
  },
  imageMessage: { format: 'string', bytes: 'string', role: 'role', parentMessageId: 'string?' },
}

const roles = new Set(['assistant', 'developer', 'system', 'tool', 'user'])
const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/**
 * Whether these are messages as real clients write them. Clients send their whole history every
 * time, and GraphQL takes ten times as long to find that out; what is not plain is left to it.
 */
export function arePlain(messages: unknown): boolean {
  return Array.isArray(messages) && messages.every(isPlain)
}

function isPlain(message: unknown): boolean {
  if (!isObject(message)) return false
  let found = 0
  for (const key in message) {
    const value = message[key]
    if (key === 'id') {
      if (typeof value !== 'string') return false
    } else if (key === 'createdAt') {
      if (typeof value !== 'string' || !dateTime.test(value)) return false
    } else if (!(Object.hasOwn(kinds, key) && isObject(value) && fits(value, kinds[key]!)))
      return false
    else found++
  }
  return found === 1 && message.id !== undefined && message.createdAt !== undefined
}

function fits(value: Record<string, unknown>, fields: Record<string, string>): boolean {
  for (const key in value) if (!Object.hasOwn(fields, key)) return false
  for (const key in fields) {
    const type = fields[key]
    const given = value[key]
    if (type === 'role') {
      if (!roles.has(given as string)) return false
    } else if (type === 'string?') {
      if (given !== undefined && given !== null && typeof given !== 'string') return false
    } else if (typeof given !== type) return false
  }
  return true
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
