import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { toolLoop } from '../../../src/agents/tool-loop/agent.ts'
import { scriptedModel } from '../../../src/models/scripted.ts'
import { peerTools as tools } from '../../support/peer-tools.ts'
import { serve } from '../../support/serve.ts'
import { type Play, playedModel, player } from './players.ts'
import {
  actionInput,
  dataOf,
  lines,
  loadMessages,
  openPage,
  post,
  type Seen,
  typedDocument,
} from './support.ts'

/** One request as the real clients sent it to the peer, and what of the answer they rely on. */
interface Step {
  /** `[role, id, words]`, `['action', id, name, arguments, parent]`, `['result', id, call, name, words]`, …
   *  `$n` is the id of the n-th message of the response before. */
  messages: string[][]
  /** Names, with what they are available to if not to all. */
  actions?: string[]
  requestType?: string
  noThread?: boolean
  properties?: object
  headers?: Record<string, string>
  /** Closes the connection when it has read this. */
  leaves?: string
  /** What the peer's response said, line by line. */
  gives: string[]
  /** What ours says, where that is something else; `deviates` names why. */
  instead?: string[]
  deviates?: string
  /** What the model or the agent was given. */
  parameters?: object
  offers?: string[]
  forwards?: object
  /** What is not in the answer. */
  without?: string
  answers?: Record<string, string>
  /** Not a response, but the state of an agent, or the list of agents. */
  load?: string
  json?: object
  loads?: string[]
  errors?: string
  agents?: true
}

interface Exchange {
  /** The captured transcripts that show it. */
  of: string
  /** What the model plays, call by call, or the agent of this name, leg by leg. */
  model?: Play[][]
  agent?: string
  plays?: Play[][]
  steps: Step[]
}

interface Request {
  of: string
  get?: string
  post?: unknown
  /** Beside or in place of what every client sends. */
  data?: Record<string, unknown>
  method?: string
  path?: string
  headers?: Record<string, string>
  status: number
  json?: object
  says?: string
  answers?: Record<string, string>
  deviates?: string
}

const read = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`shapes/${name}.json`, import.meta.url), 'utf8'))
const exchanges = [...read<Exchange[]>('chats'), ...read<Exchange[]>('agents')]
const requests = read<Request[]>('requests')
const deviations = read<Record<string, string>>('deviations')
const elsewhere = read<Record<string, string>>('elsewhere')

test.for(exchanges)('$of', async ({ model: plays = [], agent, plays: legs = [], steps }) => {
  const script = playedModel(plays)
  const model = { ...scriptedModel(script), accepts: ['image/*'] }
  const played = player(agent ?? 'nothing', legs, script)
  const server = await serve(
    {
      ...{ model, tools, builtIns: false, retry: { attempts: 1 } },
      agents: [toolLoop({ name: 'assistant' }), ...(agent ? [played.agent] : [])],
    },
    { env: { HANDRAIL_GRAPHQL_GRACE_MS: '20' } },
  )
  let ids: string[] = []
  for (const step of steps) {
    if (step.load !== undefined) {
      await checkLoad(server.url, step)
      continue
    }
    if (step.agents) {
      const { data } = await openPage(server.url).agents()
      const names = data.availableAgents.agents.map(({ name }: { name: string }) => name)
      expect(names).toEqual(expect.arrayContaining(['assistant', ...(agent ? [agent] : [])]))
      continue
    }
    const { said, response, headers, text } = await generate(server.url, step, ids)
    const wanted = certain(step.instead ?? step.gives, said)
    const like = said.map((line, i) => (exactly(wanted[i] ?? '').test(line) ? wanted[i] : line))
    expect(like).toEqual(wanted)
    for (const [name, value] of Object.entries(step.answers ?? {}))
      expect(headers.get(name)).toBe(value)
    if (step.without) expect(text).not.toContain(step.without)
    if (step.leaves !== undefined) await server.recorded('t', 'run.cancelled')
    if (step.parameters) expect(model.requests[0]!.parameters).toEqual(step.parameters)
    if (step.forwards) expect(played.contexts[0]!.options.forwarded).toMatchObject(step.forwards)
    if (step.offers) {
      const offered = agent ? played.contexts[0]!.tools : model.requests[0]!.tools
      const own = new Set(tools.map(({ name }) => name))
      const names = offered.map(({ name }) => name).filter((name) => !own.has(name))
      expect(names).toEqual(step.offers)
    }
    ids = (response?.messages ?? []).map(({ id }: { id: string }) => id)
  }
})

/** What was told too late to be told may be there or not: `?`. */
function certain(wanted: readonly string[], said: readonly string[]): string[] {
  return wanted.flatMap((line) => {
    if (!line.startsWith('?')) return [line]
    return said.includes(line.slice(1)) ? [line.slice(1)] : []
  })
}

/** `…` stands for anything. */
function exactly(line: string): RegExp {
  const parts = line.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^]*')}$`)
}

async function generate(url: string, step: Step, ids: readonly string[]) {
  const { messages, actions = [], requestType = 'Chat', noThread, properties, ...rest } = step
  const known = (id: string) => (id?.startsWith('$') ? ids[Number(id.slice(1))]! : id)
  const inputs = actions.map((one) => {
    const [name, available = 'enabled'] = one.split(' ') as [string, 'enabled' | undefined]
    return actionInput({ name, available })
  })
  const kept = ['agentSession', 'agentStates', 'metaEvents', 'context', 'cloud', 'extensions']
  const given = Object.entries(rest).filter(([key]) =>
    [...kept, 'forwardedParameters', 'runId'].includes(key),
  )
  const data = {
    ...dataOf(messages.map((one) => input(one.map(known)))),
    ...{ metadata: { requestType }, frontend: { actions: inputs }, ...Object.fromEntries(given) },
    ...(noThread && { threadId: undefined }),
  }
  const left = new AbortController()
  const answering = post(
    url,
    {
      operationName: 'generateCopilotResponse',
      query: typedDocument,
      variables: { data, properties },
    },
    {
      headers: { 'x-copilotkit-runtime-client-gql-version': '1.10.6', ...step.headers },
      signal: left.signal,
      leaves: step.leaves,
    },
  )
  const { response, json, headers, text } = await answering
  const whole = json?.data?.generateCopilotResponse ?? response
  return { said: json?.errors ? errorsOf(json) : linesOf(whole), response: whole, headers, text }
}

function input([kind, id, ...rest]: string[]): object {
  const base = { id, createdAt: '2025-01-01T00:00:00.000Z' }
  const [first, second, third] = rest
  switch (kind) {
    case 'action':
      return {
        ...base,
        actionExecutionMessage: { name: first, arguments: second, parentMessageId: third },
      }
    case 'result':
      return {
        ...base,
        resultMessage: { actionExecutionId: first, actionName: second, result: third },
      }
    case 'image':
      return { ...base, imageMessage: { format: first, bytes: second, role: 'user' } }
    case 'state':
      return {
        ...base,
        agentStateMessage: {
          ...{ threadId: 't', agentName: first, nodeName: 'n', runId: 'r', role: 'assistant' },
          ...{ state: '{"a":1}', running: true, active: false },
        },
      }
    default:
      return { ...base, textMessage: { content: first, role: kind } }
  }
}

const errorsOf = ({ errors }: { errors: { extensions?: { code?: string } }[] }): string[] =>
  errors.map(({ extensions }) => `errors ${extensions?.code}`)

/** What a response says, a line for each message, each question, and how it ended. */
function linesOf({ messages = [], metaEvents = [], status }: Seen): string[] {
  const said = (messages as Seen[]).map((one) => {
    const how = !one.status ? ' open' : one.status.code === 'Failed' ? ' failed' : ''
    switch (one.__typename) {
      case 'TextMessageOutput':
        return `text${how}: ${one.content.join('')}`
      case 'ActionExecutionMessageOutput':
        return `action${how} ${one.name}: ${one.arguments.join('')}`
      case 'ResultMessageOutput':
        return `result${how} ${one.actionName}: ${one.result}`
      default: {
        const exit = one.running ? '' : ' exit'
        return `state ${one.nodeName || '-'}${one.active ? '+' : '-'}${exit} ${one.state}`
      }
    }
  })
  const asked = (metaEvents as Seen[]).map(({ value, data }) =>
    data ? `interrupt with ${data.messages.length} messages: ${data.value}` : `interrupt: ${value}`,
  )
  const end = status ? [[status.code, status.reason].filter(Boolean).join(' ')] : []
  return [...said, ...asked, ...end]
}

async function checkLoad(url: string, { load = '', json, loads, errors }: Step): Promise<void> {
  const page = openPage(url, { agent: load })
  const { error } = await page.load()
  if (errors) {
    expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: errors } }] })
    return
  }
  const loaded = page.answers.at(-1)!.json.data.loadAgentState
  expect(loaded).toMatchObject(json ?? {})
  if (loads) expect(lines(loadMessages(loaded.messages))).toEqual(loads)
}

const all = dataOf([{ id: 'u-1', createdAt: '2025-01-01T00:00:00.000Z' }])

test.for(requests)('$of', async (one) => {
  const server = await serve({ model: scriptedModel([]), builtIns: false })
  const body = one.data
    ? { query: typedDocument, variables: { data: { ...all, ...one.data } } }
    : one.post
  if (body !== undefined) {
    const path = one.path ?? '/copilotkit'
    const answer = await post(server.url, body, {
      path,
      ...(one.headers && { headers: one.headers }),
    })
    check(one, answer.status, answer.headers, answer.text)
    return
  }
  const path = one.method === 'OPTIONS' ? '/copilotkit' : '/copilotkit/graphql'
  const response = await fetch(`${server.url}${path}${one.get ?? ''}`, {
    method: one.method ?? 'GET',
    headers: one.headers ?? {},
  })
  check(one, response.status, response.headers, await response.text())
})

function check(one: Request, status: number, headers: Headers, text: string): void {
  expect(status, text).toBe(one.status)
  for (const [name, value] of Object.entries(one.answers ?? {}))
    expect(headers.get(name)).toContain(value)
  if (one.json) expect(JSON.parse(text)).toMatchObject(one.json)
  if (one.says) expect(text).toContain(one.says)
}

test('every deviation is used by an exchange, and every one that is used has its reason', () => {
  const used = new Set(
    [...exchanges.flatMap(({ steps }) => steps), ...requests].flatMap((one) => one.deviates ?? []),
  )
  expect([...used].toSorted()).toEqual(Object.keys(deviations).toSorted())
  for (const { of, steps } of exchanges)
    for (const { instead, deviates } of steps)
      if (instead) expect(deviates, `${of} says something else for a reason`).toBeDefined()
})

test('every captured transcript is here, or it is said why not', () => {
  const shown = [...exchanges, ...requests].flatMap(({ of }) => of.split(', '))
  const names = [...shown, ...Object.keys(elsewhere)]
  expect(new Set(names).size).toBe(names.length)
  expect(names).toHaveLength(101)
})
