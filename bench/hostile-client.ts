import { randomBytes, randomUUID } from 'node:crypto'

/**
 * One tenant that sends the most expensive requests it can, for a while and with a bounded number at once. A
 * process of its own: what it costs to send must not be measured as what it costs to be served.
 */
const { url, key, seconds, atOnce } = JSON.parse(process.env.HOSTILE!) as {
  url: string
  key: string
  seconds: number
  atOnce: number
}

const until = Date.now() + seconds * 1_000
const outcomes = new Map<string, number>()
/** Images that are sent in all: each is kept on the disk of the server. */
let imagesLeft = 240

interface Attack {
  path: string
  /** Makes what the path names with `$id`. */
  id?: () => Promise<string>
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
const edited = (n: unknown) => JSON.stringify({ approved: true, edited_input: { n } })

/** Has the model ask for an approval; returns the id of the approval. */
async function approval(): Promise<string> {
  const response = await send(`/chats/${randomUUID()}/interactions`, '{"user_message":"hold 1"}')
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    const found = /"approval_id":"([^"]+)"/.exec(text)
    if (found) return found[1]!
  }
  throw new Error(`no approval: ${response.status}`)
}

const attacks: readonly Attack[] = [
  { path: agui, body: () => run({ threadId: 'diff', state: { list: numbers() } }) },
  { path: '/copilotkit', body: () => guarded('deltas 1 1', manyWords) },
  { path: '/copilotkit', body: () => guarded(longText, longWords) },
  {
    path: agui,
    body: () => run({ messages: 0 }).replace('"messages":0', `"messages":${manyMessages}`),
  },
  {
    path: agui,
    body() {
      const data = imagesLeft-- > 0 ? image : ''
      const picture = { type: 'binary', mimeType: 'image/png', data }
      const content = [{ type: 'text', text: 'deltas 1 1' }, picture]
      return run({ messages: [{ id: randomUUID(), role: 'user', content }] })
    },
  },
  { path: '/docs' },
  { path: '/openapi.json' },
  { path: '/readyz' },
  {
    path: '/copilotkit/chat',
    body: () =>
      JSON.stringify({
        ...{ session_id: '\u65e5\u672c', messages: [{ role: 'user', content: 'deltas 1 1' }] },
      }),
  },
  {
    path: agui,
    body: () => run({}),
    headers: { 'x-model-api-key': 'failing' },
  },
  { path: '/copilotkit', body: () => lineBreaks },
  { path: '/copilotkit', body: () => generate(keyed(49_000)) },
  { path: '/copilotkit', body: () => generate({ frontend: { actions } }) },
  { path: agui, body: () => run({ messages: [said('```\n'.repeat(400_000))] }) },
  { path: agui, body: () => run({ messages: [...manyCalls, said('deltas 1 1')] }) },
  { path: agui, body: () => run({ messages: sameIds }) },
  { path: '/approvals/$id', id: approval, body: () => edited(keyed(8_000)) },
  { path: '/approvals/$id', id: approval, body: () => edited(nested) },
]

const send = (path: string, body?: string, headers?: Record<string, string>) =>
  fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
    signal: AbortSignal.timeout(30_000),
    ...(body !== undefined && { body }),
  })

let next = 0
const worker = async () => {
  while (Date.now() < until) {
    const at = next++ % attacks.length
    const { path, id, body, headers } = attacks[at]!
    const began = Date.now()
    try {
      const to = id ? path.replace('$id', await id()) : path
      const response = await send(to, body?.(), headers)
      for await (const _ of response.body ?? []);
      note(`${at} ${path} ${response.status}`)
    } catch (error) {
      note(`${at} ${path} ${(error as Error).name}`)
      if (Date.now() - began < 100) await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
const note = (what: string) => outcomes.set(what, (outcomes.get(what) ?? 0) + 1)

await Promise.all(Array.from({ length: atOnce }, worker))
process.send!([...outcomes])
process.disconnect()
