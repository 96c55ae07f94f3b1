import {
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  Kind,
  parse,
  type SelectionSetNode,
  visit,
} from 'graphql'

/** How large a document may be. The questions that GraphiQL asks about the schema fit in. */
export interface Limits {
  /** The place of each error is found by counting the lines before it. */
  characters: number
  tokens: number
  /** Fields inside of fields. */
  depth: number
  /** Lists and objects inside of each other, in arguments. */
  valueDepth: number
  /** In all of the document. */
  fields: number
  aliases: number
  /** Validation prints the arguments of each two fields with the same name to compare them. */
  arguments: number
  directives: number
  /** Uses of named fragments. */
  spreads: number
  /** Of a query; a mutation has one. */
  rootFields: number
  /** Questions about the schema. */
  introspection: boolean
}

export const defaultLimits: Limits = {
  characters: 16_384,
  tokens: 4_000,
  depth: 16,
  valueDepth: 64,
  fields: 500,
  aliases: 16,
  arguments: 32,
  directives: 64,
  spreads: 32,
  rootFields: 16,
  introspection: true,
}

/** Refuses a document before anything is done that costs more than reading it. */
export function parseWithin(source: string, limits: Limits): DocumentNode {
  if (source.length > limits.characters)
    throw refusal(
      `The document has more than ${limits.characters} characters. Ask for less at once, and put what is long into variables.`,
    )
  const document = parsed(source, limits)
  for (const refuse of [count, values, fields]) refuse(document, limits)
  return document
}

function parsed(source: string, { tokens }: Limits): DocumentNode {
  try {
    return parse(source, { maxTokens: tokens })
  } catch (error) {
    if (error instanceof RangeError) throw refusal('The document is nested too deeply. Flatten it.')
    if (!(error instanceof GraphQLError) || !/tokens\. Parsing aborted/.test(error.message))
      throw error
    throw refusal(
      `The document has more than ${tokens} tokens. Ask for less at once, and put what is long into variables.`,
    )
  }
}

function count(document: DocumentNode, limits: Limits): void {
  const counted = { fields: 0, aliases: 0, arguments: 0, directives: 0, spreads: 0 }
  const add = (kind: keyof typeof counted, node: ASTNode) => {
    if (++counted[kind] <= limits[kind]) return
    const named = kind === 'spreads' ? 'spreads of fragments' : kind
    throw refusal(`The document has more than ${limits[kind]} ${named}. Use fewer.`, node)
  }
  visit(document, {
    Field(node) {
      add('fields', node)
      if (node.alias) add('aliases', node)
      for (const argument of node.arguments ?? []) add('arguments', argument)
      if (!limits.introspection && ['__schema', '__type'].includes(node.name.value))
        throw refusal(
          `This server does not answer questions about its schema. Leave out ${node.name.value}; __typename is fine.`,
          node,
        )
    },
    Directive(node) {
      add('directives', node)
      const first = node.arguments?.find(({ name }) => name.value === 'initialCount')?.value
      // A negative number would be found to be one only when the run has begun.
      if (first && !(first.kind === Kind.INT && Number(first.value) >= 0))
        throw refusal('initialCount must be a whole number of 0 or more, not a variable.', first)
    },
    FragmentSpread: (node) => add('spreads', node),
  })
}

function values(document: DocumentNode, { valueDepth }: Limits): void {
  let depth = 0
  const enter = (node: ASTNode) => {
    if (++depth > valueDepth)
      throw refusal(`A value is nested deeper than ${valueDepth} levels. Flatten it.`, node)
  }
  const leave = () => {
    depth--
  }
  visit(document, { ListValue: { enter, leave }, ObjectValue: { enter, leave } })
}

function fields(document: DocumentNode, limits: Limits): void {
  const measure = measuring(document)
  for (const node of document.definitions) {
    if (node.kind !== Kind.OPERATION_DEFINITION) continue
    const { depth, width } = measure(node.selectionSet)
    if (depth > limits.depth)
      throw refusal(
        `The ${node.operation} is ${depth} fields deep, and ${limits.depth} is the limit. Ask for less.`,
        node,
      )
    if (node.operation === 'mutation' && width > 1)
      throw refusal('A document may have one mutation. Send the others by themselves.', node)
    if (width > limits.rootFields)
      throw refusal(
        `The ${node.operation} has more than ${limits.rootFields} fields at its root. Send several requests.`,
        node,
      )
  }
}

interface Size {
  depth: number
  width: number
}

/** How deep and wide selections are, with their fragments; each fragment is measured once. */
function measuring(document: DocumentNode) {
  const sizes = new Map<string, Size>()
  const fragments = new Map<string, SelectionSetNode>()
  for (const node of document.definitions)
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node.selectionSet)
  const spread = (name: string): Size => {
    const known = sizes.get(name)
    if (known) return known
    sizes.set(name, { depth: 0, width: 0 }) // one that contains itself is refused by validation
    const size = measure(fragments.get(name))
    sizes.set(name, size)
    return size
  }
  const measure = (selection: SelectionSetNode | undefined): Size => {
    const size = { depth: 0, width: 0 }
    for (const node of selection?.selections ?? []) {
      const one =
        node.kind === Kind.FIELD
          ? { depth: 1 + measure(node.selectionSet).depth, width: isTypename(node) ? 0 : 1 }
          : node.kind === Kind.INLINE_FRAGMENT
            ? measure(node.selectionSet)
            : spread(node.name.value)
      size.depth = Math.max(size.depth, one.depth)
      size.width += one.width
    }
    return size
  }
  return measure
}

/** Clients add it wherever they can. */
const isTypename = ({ name }: FieldNode) => name.value === '__typename'

const refusal = (message: string, nodes?: ASTNode) =>
  new GraphQLError(message, { nodes, extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } })
