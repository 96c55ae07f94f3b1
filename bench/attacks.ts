import { randomBytes, randomUUID } from 'node:crypto'

export type Send = (
  path: string,
  body?: string,
  headers?: Record<string, string>,
) => Promise<Response>

/** Images that one process sends in all, because the server keeps each of them on disk. */
let imagesLeft = 240

/** A request that costs the server as much as a client can make it cost. */
export interface Attack {
  /** Short description for the report. */
  name: string
  path: string
  /** Creates the approval that `$id` in the path refers to. */
  id?: (send: Send) => Promise<string>
  body?: () => string
  headers?: Record<string, string>
}

const run = (more: object) =>
  JSON.stringify({
    ...{ threadId: randomUUID(), runId: randomUUID(), state: {}, tools: [], context: [] },
    ...{ messages: [{ id: randomUUID(), role: 'user', content: 'deltas 1 1' }] },
    ...{ forwardedProps: {}, ...more },
  })
const agui = '/copilotkit/agent/default/run'
const list = <T>(length: number, item: (n: number) => T) =>
  Array.from({ length }, (_, n) => item(n))
const keyed = (length: number) => Object.fromEntries(list(length, (n) => [`k${n}`, n]))
const numbers = () => Array.from({ length: 1_000 }, () => Math.random())
const manyMessages = JSON.stringify(
  Array.from({ length: 62_000 }, (_, n) => ({ id: `m${n}`, role: 'user', content: 'hi' })),
)
const image = randomBytes(1_900_000).toString('base64')

const query = `mutation generate($data: GenerateCopilotResponseInput!) {
  generateCopilotResponse(data: $data) { threadId status { ... on BaseResponseStatus { code } } }
}`
const generate = (more: object, content = 'deltas 1 1') => {
  const message = { id: randomUUID(), createdAt: new Date().toISOString() }
  const data = {
    ...{ threadId: randomUUID(), metadata: { requestType: 'Chat' }, frontend: { actions: [] } },
    messages: [{ ...message, textMessage: { content, role: 'user' } }],
    ...more,
  }
  return JSON.stringify({ query, variables: { data } })
}
const guarded = (content: string, denyList: readonly string[]) =>
  generate(
    { cloud: { guardrails: { inputValidationRules: { allowList: [], denyList } } } },
    content,
  )
const manyWords = Array.from({ length: 33_000 }, (_, n) => String.fromCharCode(0x3400 + n))
const longWords = Array.from({ length: 1_000 }, (_, n) => `${'ab'.repeat(20)}${n}`)
const longText = `deltas 1 1 ${'ab'.repeat(500_000)}`

const lineBreaks = JSON.stringify({ query: `${'\n'.repeat(1_900_000)}{ ${'x '.repeat(15)}}` })
const jsonSchema = `{"type":"object","enum":[${'1,'.repeat(23_000)}1]}`
const actions = list(80, (n) => ({ name: `a${n}`, description: 'd', jsonSchema }))
const call = (id: string) => ({
  ...{ id, type: 'function', function: { name: 'f', arguments: '{}' } },
})
const manyCalls = list(400, (n) => ({
  ...{ id: `a${n}`, role: 'assistant', content: '' },
  toolCalls: list(20, (at) => call(`c${n}-${at}`)),
}))
const said = (content: string) => ({ id: randomUUID(), role: 'user', content })
const sameIds = list(5_000, () => ({ ...said('deltas 1 1'), id: 'same' }))
const nested = list(380, () => list(55, () => 0).reduce<unknown>((value) => [value], 1))
const manyObjects = `[${'{},'.repeat(600_000)}{}]`
const longCall = {
  ...{ id: 'long', role: 'assistant', content: '' },
  toolCalls: [{ ...call('long'), function: { name: 'f', arguments: `{"a":${manyObjects}}` } }],
}
const edited = (n: unknown) => JSON.stringify({ approved: true, edited_input: { n } })

/**
 * 249 words of 200 characters, and a character, whose states hash to neighbouring slots of a table of 2^17 slots with
 * linear probing. Shows that the word search does not depend on such a table.
 */
function collidingWords(): { words: string[]; character: string } {
  const units = [...list(0x5100, (n) => 0x4e00 + n), ...list(0x2b00, (n) => 0xac00 + n)]
  const distance = (state: number, unit: number) => {
    const hash = Math.imul(state, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b)
    return ((hash ^ (hash >>> 15)) - 1_000) & (2 ** 17 - 1)
  }
  const firsts = new Set<number>()
  let states = 1
  const near = (state: number): number => {
    let best = units[0]!
    let shortest = 2 ** 17
    for (const unit of units) {
      const length = distance(state, unit)
      if (length >= shortest || (state === 0 && firsts.has(unit))) continue
      shortest = length
      best = unit
      if (length <= Math.max(40, states / 100)) break
    }
    return best
  }
  const words = list(249, () => {
    const first = near(0)
    firsts.add(first)
    const rest = list(199, () => near(states++))
    states++
    return String.fromCharCode(first, ...rest)
  })
  return { words, character: String.fromCharCode(near(0)) }
}
let colliding: ReturnType<typeof collidingWords> | undefined

const tokens = Object.fromEntries(list(9_900, (n) => [`token${n.toString(36)}`, `abcdef${n}`]))
const spellings = list(4_000, (n) =>
  [...'defaultvalue'].map((letter, at) => ((n >> at) & 1 ? letter.toUpperCase() : letter)).join(''),
)
const values = { ...keyed(5_800), ...Object.fromEntries(spellings.map((name) => [name, 1])) }
const withProperties = (properties: object) => {
  const { query: mutation, variables } = JSON.parse(generate({}))
  const types = '$data: GenerateCopilotResponseInput!, $properties: JSONObject'
  const declared = mutation
    .replace('$data: GenerateCopilotResponseInput!', types)
    .replace('data: $data', 'data: $data, properties: $properties')
  return JSON.stringify({ query: declared, variables: { ...variables, properties } })
}

/** Starts a run that asks for an approval and returns the id of the approval. */
async function approval(send: Send, task = 'hold 1'): Promise<string> {
  const body = JSON.stringify({ user_message: task })
  const response = await send(`/chats/${randomUUID()}/interactions`, body)
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    const found = /"approval_id":"([^"]+)"/.exec(text)
    if (found) return found[1]!
  }
  throw new Error(`no approval: ${response.status}`)
}

export const attacks: readonly Attack[] = [
  {
    name: 'state whose 1,000 numbers all change',
    path: agui,
    body: () => run({ threadId: 'diff', state: { list: numbers() } }),
  },
  {
    name: '33,000 denied words',
    path: '/copilotkit',
    body: () => guarded('deltas 1 1', manyWords),
  },
  {
    name: '1 MB of text and 1,000 denied words',
    path: '/copilotkit',
    body: () => guarded(longText, longWords),
  },
  {
    name: '62,000 messages',
    path: agui,
    body: () => run({ messages: 0 }).replace('"messages":0', `"messages":${manyMessages}`),
  },
  {
    name: 'image of 1.9 MB',
    path: agui,
    body() {
      const data = imagesLeft-- > 0 ? image : ''
      const picture = { type: 'binary', mimeType: 'image/png', data }
      const content = [{ type: 'text', text: 'deltas 1 1' }, picture]
      return run({ messages: [{ id: randomUUID(), role: 'user', content }] })
    },
  },
  { name: '/docs', path: '/docs' },
  { name: '/openapi.json', path: '/openapi.json' },
  { name: '/readyz', path: '/readyz' },
  {
    name: 'session id outside ASCII',
    path: '/copilotkit/chat',
    body: () =>
      JSON.stringify({
        ...{ session_id: '\u65e5\u672c', messages: [{ role: 'user', content: 'deltas 1 1' }] },
      }),
  },
  {
    name: 'failing model key',
    path: agui,
    body: () => run({}),
    headers: { 'x-model-api-key': 'failing' },
  },
  { name: '1.9 MB of line breaks as GraphQL', path: '/copilotkit', body: () => lineBreaks },
  {
    name: '49,000 unknown GraphQL variables',
    path: '/copilotkit',
    body: () => generate(keyed(49_000)),
  },
  {
    name: '80 actions with large schemas',
    path: '/copilotkit',
    body: () => generate({ frontend: { actions } }),
  },
  {
    name: '1.6 MB of code fences',
    path: agui,
    body: () => run({ messages: [said('```\n'.repeat(400_000))] }),
  },
  {
    name: '8,000 tool calls',
    path: agui,
    body: () => run({ messages: [...manyCalls, said('deltas 1 1')] }),
  },
  { name: '5,000 messages with one id', path: agui, body: () => run({ messages: sameIds }) },
  {
    name: '9,900 tokens as properties',
    path: agui,
    body: () => run({ forwardedProps: tokens }),
  },
  {
    name: '9,900 tokens as GraphQL properties',
    path: '/copilotkit',
    body: () => withProperties(tokens),
  },
  {
    name: '9,900 keys in a list',
    path: agui,
    body: () => run({ forwardedProps: { list: list(9_900, (n) => `sk-abcdefgh12345678${n}`) } }),
  },
  {
    name: '4,000 spellings of defaultValue',
    path: agui,
    body: () => run({ forwardedProps: values }),
  },
  {
    name: '500 KB of passwords as context',
    path: agui,
    body: () => run({ context: [{ description: 'c', value: 'password is '.repeat(43_000) }] }),
  },
  {
    name: 'edited arguments with 8,000 fields',
    path: '/approvals/$id',
    id: (send) => approval(send),
    body: () => edited(keyed(8_000)),
  },
  {
    name: 'edited arguments nested 55 deep',
    path: '/approvals/$id',
    id: (send) => approval(send),
    body: () => edited(nested),
  },
  {
    name: '49,800 characters of denied words with equal hashes',
    path: '/copilotkit',
    body() {
      colliding ??= collidingWords()
      return guarded(colliding.character.repeat(32_768), colliding.words)
    },
  },
  {
    name: 'edited arguments with 12,000 rows that do not fit a $ref',
    path: '/approvals/$id',
    id: (send) => approval(send, 'rows 1'),
    body: () =>
      JSON.stringify({ approved: true, edited_input: { rows: list(12_000, () => ({})) } }),
  },
  {
    name: '600,000 objects in the text of a GraphQL interrupt',
    path: '/copilotkit',
    body: () =>
      generate({
        metaEvents: [{ name: 'LangGraphInterruptEvent', value: manyObjects, response: '{}' }],
      }),
  },
  {
    name: '600,000 objects in the arguments of a tool call',
    path: agui,
    body: () => run({ messages: [longCall, said('deltas 1 1')] }),
  },
]

/** Returns a function that sends requests to the server at `url` with the API key `key`. */
export const sender =
  (url: string, key: string): Send =>
  (path, body, headers) =>
    fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
      signal: AbortSignal.timeout(30_000),
      ...(body !== undefined && { body }),
    })

/** Sends the attack, reads the whole response and returns its status. */
export async function attempt({ path, id, body, headers }: Attack, send: Send): Promise<number> {
  const response = await send(id ? path.replace('$id', await id(send)) : path, body?.(), headers)
  for await (const _ of response.body ?? []);
  return response.status
}
