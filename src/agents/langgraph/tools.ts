import type { BaseMessage } from '@langchain/core/messages'
import type { RunnableConfig } from '@langchain/core/runnables'
import type { StructuredToolInterface } from '@langchain/core/tools'
import { z } from 'zod'
import { TimeUp } from '../../core/countdown.ts'
import type { CallPart, Message } from '../../core/messages.ts'
import { asText, callsOf, textOf } from '../../core/messages.ts'
import { defineTool, type InputSchema, isZod, type Tool } from '../../core/tool.ts'
import { sha256 } from '../../lib/canonical.ts'
import { isJson } from '../../lib/json.ts'
import { compileSchema } from '../../lib/json-schema.ts'
import { findHere, type Here } from './here.ts'
import type { AnyGraph } from './options.ts'

/** What is true of all tools that are governed together. */
export type GovernedToolOptions = Partial<Pick<Tool, 'access' | 'idempotent' | 'timeout'>>

/** Under this key a governed tool says what it is to us. */
const ours = Symbol.for('handrail.tool')

/**
 * The same tools, for tool nodes and prebuilt agents, of which every call goes by the policy and the ledger:
 * asked about where the policy says so, made once, and not again when the node is.
 */
export function governedTools<T extends StructuredToolInterface>(
  tools: readonly T[],
  options: GovernedToolOptions = {},
): T[] {
  return tools.map((tool) => {
    const governed = toolOf(tool, options)
    const invoke = (input: unknown, config?: Config) => invoked(tool.name, input, config)
    return new Proxy(tool, {
      get(target, key, receiver) {
        if (key === ours) return governed
        return key === 'invoke' || key === 'call' ? invoke : Reflect.get(target, key, receiver)
      },
    })
  })
}

/** A node in place of LangGraph's own: makes all calls of the last message, also those of tools that we bring. */
export async function toolNode(state: { messages: readonly BaseMessage[] }) {
  const here = findHere('toolNode')
  const { fromLangChain, toLangChain } = await import('./messages.ts')
  const last = state.messages.findLast((one) => one.type === 'ai')
  const message = last && fromLangChain(last, '')
  const calls: CallPart[] = message ? callsOf(message) : []
  for (const call of calls) await known(call, here)
  const results = await here.through(async () => {
    await here.ctx.call(calls)
    return calls.map((call) => resultOf(call, here)!)
  })
  return { messages: results.map(toLangChain) }
}

/** For `bindTools`, inside of a node: the tools that run in the client, and with `server` ours too. */
export function offeredTools({ server = false } = {}) {
  const { ctx } = findHere('offeredTools')
  const client = new Set(ctx.options.clientTools?.map(({ name }) => name))
  return ctx.tools
    .filter(({ name }) => server || client.has(name))
    .map((spec) => ({ type: 'function' as const, function: spec }))
}

/** The governed tools among those that are named, and of the graph's tool nodes. */
export function toolsIn(graph: AnyGraph, named: readonly object[]): Tool[] {
  const nodes = Object.values(graph.nodes) as { bound?: unknown }[]
  const listed = nodes.flatMap(({ bound }) => {
    const { tools, steps = [] } = Object(bound) as {
      tools?: unknown
      steps?: { tools?: unknown }[]
    }
    return [tools, ...steps.map((step) => Object(step).tools)].filter(Array.isArray).flat()
  })
  const found = [...listed, ...named].map((one) => Object(one)[ours] as Tool | undefined)
  return [...new Map(found.filter((tool) => tool).map((tool) => [tool!.name, tool!])).values()]
}

async function invoked(name: string, input: unknown, config: Config = {}) {
  const here = findHere(`The governed tool ${name}`)
  const asked = Object(input) as { type?: unknown; id?: string; args?: unknown }
  const isCall = asked.type === 'tool_call'
  const args = (isCall ? asked.args : input) ?? {}
  if (!isJson(args))
    throw new Error(`The input of ${name} has a value that JSON cannot represent. Pass plain data.`)
  const callId = (isCall ? asked.id : undefined) ?? config.toolCall?.id
  const call: CallPart = {
    type: 'call',
    callId: callId ?? `call_${sha256(await here.place()).slice(0, 24)}`,
    name,
    input: JSON.stringify(args),
  }
  await known(call, here)
  const message = await here.through(async () => {
    await here.ctx.call([call])
    return resultOf(call, here)!
  })
  if (!isCall) return textOf(message)
  const { toLangChain } = await import('./messages.ts')
  return toLangChain(message)
}

type Config = RunnableConfig & { toolCall?: { id?: string } }

/** Turns of the event loop in which a message that was said gets to us. */
const patience = 64

/** A call belongs to a message; one that a node makes up gets a message of its own. */
async function known(call: CallPart, here: Here): Promise<void> {
  const isIn = (message: Message) => callsOf(message).some(({ callId }) => callId === call.callId)
  for (let turn = 0; turn < patience; turn++) {
    if (here.ctx.messages().some(isIn)) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  const id = `${call.callId}_message`
  await here.say({ type: 'message', message: { id, role: 'assistant', parts: [call] } })
}

const resultOf = ({ callId }: CallPart, { ctx }: Here): Message | undefined =>
  ctx.messages().findLast((message) => message.role === 'tool' && message.callId === callId)

function toolOf(tool: StructuredToolInterface, options: GovernedToolOptions): Tool {
  const { name, description } = tool
  const callable = parsed(tool)
  return defineTool({
    ...options,
    name,
    description,
    schema: schemaOf(tool),
    async run(input, { signal, effectId }) {
      const output: unknown = await callable.invoke(input as never, {
        signal: untilCancelled(signal),
        configurable: { effectId, signal },
      })
      const content = Object(output) as { lg_name?: unknown; content?: unknown }
      if (content.lg_name === 'Command')
        throw new Error(
          `${name} gives a Command. A governed tool gives a result: update the state in a node.`,
        )
      return asText(content.content ?? output)
    },
  })
}

/**
 * A signal that fires when the call is cancelled, but not at its timeout. LangChain rejects as soon as `config.signal`
 * fires and drops the result of the tool, which would be lost as a late result.
 */
function untilCancelled(signal: AbortSignal): AbortSignal {
  const cancelled = new AbortController()
  const follow = () => {
    if (!(signal.reason instanceof TimeUp)) cancelled.abort(signal.reason)
  }
  if (signal.aborted) follow()
  else signal.addEventListener('abort', follow, { once: true })
  return cancelled.signal
}

/**
 * The same tool without its schema. We have parsed the input: LangChain would parse the result once more, which fails
 * where the schema has transforms, and would run the patterns of a JSON Schema as backtracking RegExps.
 */
function parsed(tool: StructuredToolInterface): StructuredToolInterface {
  const _call = (...args: unknown[]) => (tool as unknown as Callable)._call(...args)
  return Object.create(tool, { schema: { value: z.any() }, _call: { value: _call } })
}

interface Callable {
  _call(...args: unknown[]): unknown
}

function schemaOf({ name, schema }: StructuredToolInterface): InputSchema {
  if (isZod(schema)) return schema
  if ('_def' in schema)
    throw new Error(`The schema of the tool ${name} is not of zod 4. Make it with zod 4.`)
  return { json: schema, issues: compileSchema(schema, { unsupportedPatterns: 'skip' }) }
}
