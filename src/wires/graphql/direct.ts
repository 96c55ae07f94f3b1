import {
  buildSchema,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
  parse,
  stripIgnoredCharacters,
} from 'graphql'
import { sha256 } from '../../lib/canonical.ts'
import { type Heartbeats, sse } from '../sse.ts'
import { Encoder, isOver } from './encoder.ts'
import type { Generated, RuntimeEvent } from './events.ts'
import { LongTexts } from './long-texts.ts'
import { mannerOf, multipart, partText, partTexts } from './parts.ts'
import { arePlain } from './plain.ts'
import { scalars } from './scalars.ts'
import { typeDefs } from './schema.ts'
import type { GenerateInput } from './shapes.ts'
import { variablesProblem } from './variables.ts'

/** Digests of the documents that the encoder answers: the mutation of CopilotKit's clients. */
const known = new Set(['7e89bd7ab0c4036d8106bd163a0a26701b77fddd909f93f7b130885dbf1bbc1f'])

export interface DirectCall {
  data: GenerateInput
  properties: Record<string, unknown>
}

/**
 * Reads what real clients send without executing it. Gives nothing for any other document, or for
 * variables that do not fit: the executor answers those.
 */
export function directCalls() {
  const schema = buildSchema(typeDefs)
  for (const [name, { parseValue }] of Object.entries(scalars))
    Object.assign(schema.getType(name) ?? {}, { parseValue })
  const documents = new Map<string, OperationDefinitionNode>()

  const operationOf = (query: string): OperationDefinitionNode | undefined => {
    const seen = documents.get(query)
    if (seen || query.length > 16_384) return seen
    const text = stripped(query)
    if (text === undefined || !known.has(sha256(text))) return undefined
    const operation = parse(query).definitions.find(
      ({ kind }) => kind === Kind.OPERATION_DEFINITION,
    )
    if (documents.size < 16) documents.set(query, operation as OperationDefinitionNode)
    return operation as OperationDefinitionNode
  }

  return (body: { query: string; variables?: unknown }, accept: string): DirectCall | undefined => {
    if (!accept.includes('multipart/mixed') || mannerOf(accept) !== 'multipart') return undefined
    const operation = operationOf(body.query)
    if (!operation) return undefined
    const variables = Object(body.variables ?? {}) as { data?: Partial<GenerateInput> | null }
    const messages = arePlain(variables.data?.messages) ? variables.data?.messages : undefined
    const checked = messages
      ? { ...variables, data: { ...variables.data, messages: [] } }
      : variables
    if (variablesProblem(schema, operation, checked)) return undefined
    const { coerced } = getVariableValues(schema, operation.variableDefinitions ?? [], checked)
    if (!coerced) return undefined
    const { data, properties } = coerced as { data: GenerateInput; properties?: object | null }
    return { data: messages ? { ...data, messages } : data, properties: { ...properties } }
  }
}

function stripped(query: string): string | undefined {
  try {
    return stripIgnoredCharacters(query)
  } catch {
    return undefined
  }
}

/** `failed` makes the last event of a response whose events broke off. */
export function directResponse(
  generated: Generated,
  heartbeats: Heartbeats,
  failed: (error: unknown) => RuntimeEvent,
): Response {
  const encoder = new Encoder()
  const long = new LongTexts()
  /** The header of a part has been sent, and its end has not. */
  let isInPart = false
  async function* part(events: readonly RuntimeEvent[]): AsyncGenerator<string, void, undefined> {
    const json = encoder.json(events.map((event) => long.marked(event)))
    const end = isOver(events) ? multipart.end : ''
    if (!long.isIn(json)) return yield partText(multipart, json) + end
    for await (const text of partTexts(multipart, json, long)) {
      isInPart = true
      yield text
    }
    isInPart = false
    if (end !== '') yield end
  }
  async function* parts(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
    const all = generated.events(signal) // before anything is sent: who leaves now has left too
    yield encoder.head(generated)
    try {
      for await (const events of all) yield* part(events)
    } catch (error) {
      if (isInPart) throw error // closes the connection: the rest of a part cannot be another part
      yield* part([failed(error)])
    }
  }
  const beat = encoder.parts([]) // says that there is more to come, and nothing else
  return sse(parts, heartbeats, { headers: multipart.headers, beat, frameEnd: multipart.after })
}
