import { z } from 'zod'
import { pauses } from '../../lib/pause.ts'
import type { Route } from '../http.ts'

/** Makes the OpenAPI document from the route table that serves the requests. Lets other requests run in between. */
export async function openApi(routes: readonly Route[], version: string) {
  const paths: Record<string, Record<string, unknown>> = {}
  const pause = pauses()
  for (const one of routes) {
    await pause()
    paths[one.path] ??= {}
    const others = paths[one.path]![one.method] as Operation | undefined
    paths[one.path]![one.method] = others ? either(others, operation(one)) : operation(one)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Handrail', version, description: 'Agents with a human hand on the rail.' },
    paths,
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
    },
  }
}

type Operation = ReturnType<typeof operation>

/** Two wires at one address. */
function either(first: Operation, second: Operation) {
  const schemas = [first, second].map((one) => one.requestBody?.content['application/json'].schema)
  const content = { 'application/json': { schema: { anyOf: schemas } } }
  const summary = `${first.summary}; or: ${second.summary}`
  return { ...first, summary, requestBody: { required: true, content } }
}

function operation(one: Route) {
  const responses: Record<string, unknown> = {}
  for (const [status, { description, schema, stream }] of Object.entries(one.responses)) {
    const content: Record<string, unknown> = {}
    if (schema) content['application/json'] = { schema: jsonSchema(schema, 'output') }
    if (stream) content[stream] = { schema: { type: 'string' } }
    const some = Object.keys(content).length > 0
    responses[status] = { description, ...(some && { content }) }
  }
  const parameters = [
    ...parametersOf(one.params, 'path'),
    ...parametersOf(one.query, 'query'),
    ...Object.entries(one.headers ?? {}).map(([name, description]) => ({
      name,
      in: 'header',
      description,
      schema: { type: 'string' },
    })),
  ]
  return {
    operationId: operationId(one),
    summary: one.summary,
    ...(parameters.length > 0 && { parameters }),
    ...(one.body && {
      requestBody: {
        required: !one.bodyOptional,
        content: { 'application/json': { schema: jsonSchema(one.body, 'input') } },
      },
    }),
    responses,
  }
}

function operationId({ method, path }: Route): string {
  const words = path.split('/').filter((word) => word !== '' && !word.startsWith('{'))
  return [method, ...words].join('_').replace(/\W/g, '_') + (path.endsWith('}') ? '_one' : '')
}

function parametersOf(schema: z.ZodType | undefined, where: 'path' | 'query') {
  if (!schema) return []
  const { properties = {}, required = [] } = jsonSchema(schema, 'input') as {
    properties?: Record<string, unknown>
    required?: string[]
  }
  return Object.entries(properties).map(([name, one]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    schema: one,
  }))
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}
