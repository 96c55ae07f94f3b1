import { z } from 'zod'
import { defineTool, type Tool } from '../core/tool.ts'

/** An action of CopilotKit's runtime: a name, a list of parameters, and what it does. */
export interface Action {
  name: string
  description?: string
  parameters?: readonly ActionParameter[]
  handler: (args: never) => unknown
}

export interface ActionParameter {
  name: string
  /** Default `string`. */
  type?: ParameterType | `${ParameterType}[]`
  description?: string
  /** Default true. */
  required?: boolean
  /** The parts of an `object`, or of each in an `object[]`. */
  attributes?: readonly ActionParameter[]
  /** All that a `string` may be. */
  enum?: readonly string[]
}

type ParameterType = 'string' | 'number' | 'boolean' | 'object'

/** An action as a tool. It is asked about like any other that does not say what it touches. */
export function actionTool({ name, description = '', parameters = [], handler }: Action): Tool {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw new Error(`actions.${name}: name actions with 1 to 64 letters, digits, _ and -.`)
  }
  if (typeof handler !== 'function') throw new Error(`actions.${name}: give it a handler.`)
  return defineTool({
    name,
    description,
    schema: objectOf(parameters, `actions.${name}`),
    run: async (input) => {
      const done = await handler(input as never)
      return done === undefined ? 'Done.' : done
    },
  })
}

function objectOf(parameters: readonly ActionParameter[], named: string): z.ZodType {
  const fields = parameters.map((one) => {
    const field = described(typeOf(one, `${named}.${one.name}`), one.description)
    return [one.name, one.required === false ? field.optional() : field] as const
  })
  return z.strictObject(Object.fromEntries(fields))
}

function typeOf(parameter: ActionParameter, named: string): z.ZodType {
  const { type = 'string', attributes, enum: choices } = parameter
  if (type.endsWith('[]')) {
    const each = { ...parameter, type: type.slice(0, -2) as ParameterType }
    return z.array(typeOf(each, named))
  }
  switch (type) {
    case 'string':
      return choices && choices.length > 0 ? z.enum(choices as [string]) : z.string()
    case 'number':
      return z.number()
    case 'boolean':
      return z.boolean()
    case 'object':
      return attributes ? objectOf(attributes, named) : z.record(z.string(), z.unknown())
    default:
      throw new Error(`${named}: there is no type ${type}.`)
  }
}

const described = (type: z.ZodType, description: string | undefined): z.ZodType =>
  description === undefined ? type : type.describe(description)
