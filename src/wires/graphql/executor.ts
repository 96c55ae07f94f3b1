import { setImmediate } from 'node:timers/promises'
import { useDeferStream } from '@graphql-yoga/plugin-defer-stream'
import { type DocumentNode, GraphQLError, getOperationAST, validate, visit } from 'graphql'
import {
  createLRUCache,
  createSchema,
  createYoga,
  isAsyncIterable,
  type Plugin,
  processRegularResult,
} from 'graphql-yoga'
import { lazily } from '../../lib/lazily.ts'
import { pauseBefore } from '../../lib/pause.ts'
import { Delivery } from './delivery.ts'
import type { Generated } from './events.ts'
import { defaultLimits, parseWithin } from './limits.ts'
import { LongTexts } from './long-texts.ts'
import { inParts, mannerOf } from './parts.ts'
import { rehearsalResolvers, rehearsals } from './rehearsal.ts'
import { copilotResponse } from './response.ts'
import type { Asked } from './runs.ts'
import { scalars } from './scalars.ts'
import { typeDefs } from './schema.ts'
import type {
  AvailableAgents,
  GenerateInput,
  LoadAgentStateInput,
  LoadedState,
  LoadedText,
} from './shapes.ts'
import { variablesProblem } from './variables.ts'

/** What the operations do. What they throw is told by `tell`. */
export interface Resolvers {
  availableAgents(asked: Asked): Promise<AvailableAgents>
  loadAgentState(data: LoadAgentStateInput, asked: Asked): Promise<LoadedState>
  generate(
    data: GenerateInput,
    properties: Record<string, unknown>,
    asked: Asked,
  ): Promise<Generated>
}

export interface ExecutorOptions {
  introspection: boolean
  /** An error as clients may see it; its place in the document is added here. */
  tell: (error: unknown, path: readonly (string | number)[] | undefined) => GraphQLError
}

interface Context {
  resolvers: Resolvers
  asked: Asked
  body: unknown
  delivery: Delivery
  long: LongTexts
  /** Threads that this request has loaded. */
  loaded: Map<string, Promise<object>>
}

/** Answers any document; heavy to load. */
export function graphqlExecutor(resolvers: Resolvers, options: ExecutorOptions) {
  const schema = createSchema<Context>({ typeDefs, resolvers: fields(options) })
  const yoga = createYoga<Context>({
    schema,
    graphqlEndpoint: '*', // who calls us knows which address this is
    fetchAPI: { Request, Response, ReadableStream, TextEncoder, URL, Headers },
    plugins: [useDeferStream(), limited(options), bodyAsRead, delivered(options)],
    maskedErrors: { maskError: (error) => masked(error, options) },
    parserAndValidationCache: { documentCache: small(), errorCache: small() },
    maxRequestBodySize: false, // it was read before us
    multipart: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    logging: false,
  })
  /** `body` is the parsed JSON of a POST; a GET has its query in the address. */
  async function execute(
    request: Request,
    body: unknown,
    asked: Asked,
    used: Resolvers = resolvers,
  ): Promise<Response> {
    try {
      const long = new LongTexts()
      const delivery = new Delivery(request.signal)
      const context = { resolvers: used, asked, body, delivery, long, loaded: new Map() }
      return await long.fill(await yoga.fetch(request, context))
    } catch (error) {
      if (!request.signal.aborted) throw error
      return new Response(null, { status: 499 }) // for nobody: who asked has left
    }
  }

  return {
    schema,
    execute: (request: Request, body: unknown, asked: Asked) => execute(request, body, asked),
    /** Runs one operation of each kind without the resolvers, in steps: compiling their code takes milliseconds. */
    async rehearse(): Promise<void> {
      const caller = { tenant: '', user: '', roles: [], wire: 'graphql' }
      for (const { accept, body } of rehearsals) {
        await setImmediate()
        const headers = { accept, 'content-type': 'application/json' }
        const request = new Request('http://localhost/', { method: 'POST', headers, body: '{}' })
        const response = await execute(request, body, { caller, request }, rehearsalResolvers)
        await response.arrayBuffer()
      }
    },
  }
}

function fields({ tell }: ExecutorOptions) {
  return {
    ...scalars,
    Query: {
      hello: () => 'Hello World',
      availableAgents: (_: unknown, __: unknown, { resolvers, asked }: Context) =>
        resolvers.availableAgents(asked),
      loadAgentState: (_: unknown, { data }: Loading, context: Context) => {
        const { resolvers, asked, long, loaded } = context
        const key = JSON.stringify([data.threadId, data.agentName])
        const loading = loaded.get(key) ?? load(resolvers.loadAgentState(data, asked), long)
        loaded.set(key, loading)
        return loading
      },
    },
    Mutation: {
      generateCopilotResponse: async (_: unknown, given: Given, context: Context) => {
        const { resolvers, asked, delivery, long } = context
        await pauseBefore(given.data.messages.length) // the variables were coerced just now
        const generated = await resolvers.generate(given.data, given.properties ?? {}, asked)
        return copilotResponse(generated, delivery, long, (error) =>
          tell(error, ['generateCopilotResponse']),
        )
      },
    },
  }
}

/** The loaded state with texts that are made when a document selects them: once, however many aliases it has. */
async function load(loading: Promise<LoadedState>, long: LongTexts): Promise<object> {
  const { state, messages, ...loaded } = await loading
  const text = (make: () => Promise<LoadedText>) => lazily(async () => long.placed(await make()))
  return { ...loaded, state: text(state), messages: text(messages) }
}

interface Loading {
  data: LoadAgentStateInput
}

interface Given {
  data: GenerateInput
  properties?: Record<string, unknown> | null
}

/** Errors of a document that are listed: finding the place of one takes as long as reading the document. */
const maxErrors = 10

function limited({ introspection }: ExecutorOptions): Plugin {
  const limits = { ...defaultLimits, introspection }
  return {
    onParse: ({ setParseFn }) => setParseFn((source: string) => parseWithin(source, limits)),
    onValidate({ setValidationFn }) {
      setValidationFn(((schema, document, rules) =>
        validate(schema, document, rules, { maxErrors })) as typeof validate)
      return ({ valid, result, setResult }) => {
        if (!(valid || introspection)) setResult((result as GraphQLError[]).map(withoutHints))
      }
    },
  }
}

const bodyAsRead: Plugin<Context, Context> = {
  onRequestParse({ request, serverContext, setRequestParser }) {
    const { body } = serverContext as Context
    // Without a parser the answer is 415.
    if (request.method === 'POST')
      setRequestParser((body === undefined ? undefined : () => body) as never)
  },
}

/** In parts at the reader's pace where the document asks for parts and the client reads them. */
function delivered(options: ExecutorOptions): Plugin<Context, Context> {
  return {
    async onExecute({ args, setResultAndStopExecution }) {
      const { asked, delivery } = args.contextValue as Context
      const operation = getOperationAST(args.document, args.operationName)
      const problem = operation && variablesProblem(args.schema, operation, args.variableValues)
      if (problem) {
        const { message, extensions } = options.tell(problem, undefined)
        const asGraphql = { ...extensions, http: { status: 400 } }
        setResultAndStopExecution({
          errors: [new GraphQLError(message, { extensions: asGraphql })],
        })
        return
      }
      const { data } = Object(args.variableValues) as { data?: Partial<GenerateInput> }
      await pauseBefore(data?.messages?.length ?? 0)
      // Only a run is worth parts. What a query finds is there already, and may have long texts.
      const isQuery = operation?.operation === 'query'
      if (isQuery || mannerOf(asked.request.headers.get('accept')) === 'whole')
        args.document = whole(args.document)
      return {
        onExecuteDone({ result, setResult }) {
          if (isAsyncIterable(result))
            setResult(
              delivery.paced(result as AsyncIterable<Part>, (part) => maskedPart(part, options)),
            )
        },
      }
    },
    onResultProcess({ request, result, setResult, serverContext, ...given }) {
      const { resultProcessor, setResultProcessor } = given
      const { long } = serverContext as Context
      if (passes(result)) setResult({ ...result, extensions: { http: { headers: comeAgain } } })
      const manner = mannerOf(request.headers.get('accept'))
      if (isAsyncIterable(result) && manner !== 'whole')
        setResultProcessor(() => inParts(result as AsyncIterable<object>, manner, long), '*/*')
      // It is done by now: better told in a form that was not asked for than not at all.
      else if (!resultProcessor) setResultProcessor(processRegularResult, 'application/json')
    },
  }
}

const comeAgain = { 'retry-after': '1' }

/** Refused because something is away that will be back. */
function passes(result: unknown): result is { errors: GraphQLError[] } {
  const { errors = [] } = result as { errors?: readonly GraphQLError[] }
  return errors.some(({ extensions }) => extensions.statusCode === 503)
}

/** The document without what asks for parts, so that its result comes whole. */
function whole(document: DocumentNode): DocumentNode {
  return visit(document, {
    Directive: ({ name }) => (['defer', 'stream'].includes(name.value) ? null : undefined),
  })
}

interface Part {
  incremental?: { errors?: readonly GraphQLError[] }[]
}

function maskedPart(part: Part, options: ExecutorOptions): object {
  if (!part.incremental?.some(({ errors }) => errors)) return part
  const incremental = part.incremental.map(({ errors, ...entry }) =>
    errors ? { ...entry, errors: errors.map((error) => masked(error, options)) } : entry,
  )
  return { ...part, incremental }
}

/** GraphQL's own errors speak of the document. Others are ours to tell, without what caused them. */
function masked(error: unknown, { tell, introspection }: ExecutorOptions): GraphQLError {
  if (!(error instanceof GraphQLError)) return tell(error, undefined)
  let cause: Error = error
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError
  if (cause instanceof GraphQLError) return introspection ? error : withoutHints(error)
  const { nodes, path } = error
  const { message, extensions } = tell(cause, path)
  return new GraphQLError(message, { nodes, path, extensions })
}

/** What a wrong name is like would tell the schema word by word. */
function withoutHints({ message, nodes, path, extensions }: GraphQLError): GraphQLError {
  const hint = message.endsWith('?') ? message.indexOf(' Did you mean ') : -1
  const plain = hint < 0 ? message : message.slice(0, hint)
  return new GraphQLError(plain, { nodes, path, extensions })
}

/** Few documents are asked for again and again; long ones are not kept for those who make them up. */
function small<T extends object>() {
  const cache = createLRUCache<T>({ max: 32 })
  return {
    get: (document: string) => cache.get(document),
    set: (document: string, value: T) => {
      if (document.length <= 16_384) cache.set(document, value)
    },
  }
}
