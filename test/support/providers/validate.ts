import type { Json, WireName } from './wires.ts'

/**
 * What the providers check before they answer, as strictly as any of them does. Gives the first
 * problem, in words. Written apart from the code whose requests it judges.
 */
export function problemWith(wire: WireName, body: Json): string | undefined {
  const found = [...problems[wire](body), ...unicode(body)]
  return found[0]
}

const problems: Record<WireName, (body: Json) => Generator<string>> = {
  chat: chatProblems,
  responses: responsesProblems,
  messages: messagesProblems,
  gemini: geminiProblems,
}

const name = /^[a-zA-Z0-9_-]{1,64}$/
const blank = (text: unknown) => typeof text !== 'string' || text.trim() === ''
const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function* unicode(value: Json, path = 'body'): Generator<string> {
  if (typeof value === 'string' && !value.isWellFormed()) yield `${path}: half a character`
  if (typeof value !== 'object' || value === null) return
  for (const [key, one] of Object.entries(value)) {
    if (!key.isWellFormed()) yield `${path}: half a character in a key`
    yield* unicode(one, `${path}.${key}`)
  }
}

function* argumentsProblems(text: unknown, at: string): Generator<string> {
  try {
    if (!isObject(JSON.parse(String(text)))) yield `${at}: arguments are no object`
  } catch {
    yield `${at}: arguments are no JSON`
  }
}

function* toolProblems(tools: Json[], schema: (tool: Json) => Json): Generator<string> {
  const names = new Set<string>()
  for (const tool of tools) {
    if (!name.test(tool.name)) yield `tool ${tool.name}: bad name`
    if (names.has(tool.name)) yield `tool ${tool.name} twice`
    names.add(tool.name)
    if (schema(tool)?.type !== 'object') yield `tool ${tool.name}: no object schema`
  }
}

function* contentProblems(content: Json, at: string): Generator<string> {
  if (typeof content === 'string') {
    if (blank(content)) yield `${at}: empty`
    return
  }
  if (!Array.isArray(content) || content.length === 0) return yield `${at}: no content`
  for (const part of content) {
    if ('text' in part && blank(part.text)) yield `${at}: empty text`
    if (part.type === 'image_url' && blank(part.image_url?.url)) yield `${at}: image without data`
    if (part.type === 'input_image' && blank(part.image_url)) yield `${at}: image without data`
  }
}

function* chatProblems({ messages, tools = [] }: Json): Generator<string> {
  if (!Array.isArray(messages) || messages.length === 0) return yield 'no messages'
  const ids = new Set<string>()
  let open: string[] = []
  let before = 'system'
  for (const [i, message] of messages.entries()) {
    const at = `messages.${i}`
    const { role, content, tool_calls, tool_call_id } = message
    if (role === 'tool') {
      if (!open.includes(tool_call_id)) yield `${at}: a result without its call before it`
      open = open.filter((id) => id !== tool_call_id)
      yield* contentProblems(content, at)
    } else {
      if (open.length > 0) yield `${at}: calls ${open} have no result`
      if ((role === 'system' || role === 'developer') && before !== 'system') yield `${at}: late`
      if (role === 'user' && before === 'user') yield `${at}: the user twice in a row`
      if (role === 'assistant' && before === 'assistant') yield `${at}: the model twice in a row`
      if (role === 'assistant' && tool_calls) {
        if (tool_calls.length === 0) yield `${at}: empty tool_calls`
        for (const { id, function: called } of tool_calls) {
          if (ids.has(id) || id.length > 64) yield `${at}: bad call id ${id}`
          ids.add(id)
          open.push(id)
          if (!name.test(called.name)) yield `${at}: bad name ${called.name}`
          yield* argumentsProblems(called.arguments, at)
        }
      } else yield* contentProblems(content, at)
    }
    before = role
  }
  if (open.length > 0) yield `calls ${open} have no result`
  if (before !== 'user' && before !== 'tool') yield `the last message is of ${before}`
  yield* toolProblems(
    tools.map((one: Json) => one.function),
    (one) => one.parameters,
  )
}

function* responsesProblems({ input, tools = [], store }: Json): Generator<string> {
  if (!Array.isArray(input) || input.length === 0) return yield 'no input'
  if (store !== false) yield 'would be stored'
  const ids = new Set<string>()
  const open = new Set<string>()
  let before = ''
  for (const [i, item] of input.entries()) {
    const at = `input.${i}`
    if (item.type === 'item_reference') yield `${at}: refers to what is not stored`
    if (before === 'reasoning' && item.role !== 'assistant' && item.type !== 'function_call')
      if (item.type !== 'reasoning') yield `${at}: reasoning without what follows it`
    if (item.type === 'function_call') {
      if (ids.has(item.call_id) || item.call_id.length > 64) yield `${at}: bad id ${item.call_id}`
      ids.add(item.call_id)
      open.add(item.call_id)
      if (!name.test(item.name)) yield `${at}: bad name ${item.name}`
      yield* argumentsProblems(item.arguments, at)
    } else if (item.type === 'function_call_output') {
      if (!open.delete(item.call_id)) yield `${at}: a result without its call`
      if (blank(item.output)) yield `${at}: empty output`
    } else if (item.type === 'reasoning') {
      if (blank(item.encrypted_content)) yield `${at}: reasoning that is not kept anywhere`
    } else {
      if (open.size > 0) yield `${at}: calls ${[...open]} have no result`
      yield* contentProblems(item.content, at)
    }
    before = item.type ?? item.role
  }
  if (open.size > 0) yield `calls ${[...open]} have no result`
  if (input.at(-1).role === 'assistant') yield 'the last item is of the model'
  yield* toolProblems(tools, (one) => one.parameters)
}

function* messagesProblems(body: Json): Generator<string> {
  const { messages, system = [], tools = [], max_tokens } = body
  if (!Array.isArray(messages) || messages.length === 0) return yield 'no messages'
  if (!(max_tokens > 0)) yield 'no max_tokens'
  for (const { text } of typeof system === 'string' ? [{ text: system }] : system)
    if (blank(text)) yield 'system: empty'
  if (messages[0].role !== 'user') yield 'the first message is not of the user'
  if (messages.at(-1).role !== 'user') yield 'the last message is not of the user'
  const ids = new Set<string>()
  let calls: string[] = []
  for (const [i, { role, content }] of messages.entries()) {
    const at = `messages.${i}`
    if (role !== (i % 2 === 0 ? 'user' : 'assistant')) yield `${at}: roles do not alternate`
    if (!Array.isArray(content) || content.length === 0) return yield `${at}: no content`
    const results = content.filter(({ type }: Json) => type === 'tool_result')
    const answered = results.map(({ tool_use_id }: Json) => tool_use_id)
    if (answered.length !== calls.length || calls.some((id) => !answered.includes(id)))
      yield `${at}: results ${answered} for calls ${calls}`
    if (results.some((one: Json) => content.indexOf(one) >= results.length))
      yield `${at}: results are not first`
    calls = []
    for (const block of content) {
      if (block.type === 'text' && blank(block.text)) yield `${at}: empty text`
      if (block.type === 'thinking' && blank(block.signature)) yield `${at}: unsigned thought`
      if (block.type === 'image' && block.source.type === 'base64' && blank(block.source.data))
        yield `${at}: image without data`
      if (block.type !== 'tool_use') continue
      if (ids.has(block.id) || !/^[a-zA-Z0-9_-]+$/.test(block.id)) yield `${at}: bad id ${block.id}`
      ids.add(block.id)
      calls.push(block.id)
      if (!name.test(block.name)) yield `${at}: bad name ${block.name}`
      if (!isObject(block.input)) yield `${at}: input is no object`
    }
  }
  if (ids.size > 0 && tools.length === 0) yield 'calls, but no tools'
  yield* toolProblems(tools, (one) => one.input_schema)
}

function* geminiProblems({ contents, systemInstruction, tools = [] }: Json): Generator<string> {
  if (!Array.isArray(contents) || contents.length === 0) return yield 'no contents'
  for (const { text } of systemInstruction?.parts ?? []) if (blank(text)) yield 'system: empty'
  if (contents[0].role !== 'user') yield 'the first content is not of the user'
  if (contents.at(-1).role !== 'user') yield 'the last content is not of the user'
  let calls: string[] = []
  let before = ''
  for (const [i, { role, parts }] of contents.entries()) {
    const at = `contents.${i}`
    if (role !== 'user' && role !== 'model') yield `${at}: role ${role}`
    if (role === 'model' && before === 'model') yield `${at}: the model twice in a row`
    if (!Array.isArray(parts) || parts.length === 0) return yield `${at}: no parts`
    const answered = parts.flatMap((part: Json) => part.functionResponse?.name ?? [])
    if (answered.join() !== calls.join()) yield `${at}: results ${answered} for calls ${calls}`
    calls = []
    for (const part of parts) {
      if ('text' in part && blank(part.text)) yield `${at}: empty text`
      if (part.inlineData && blank(part.inlineData.data)) yield `${at}: image without data`
      if (part.functionResponse && !isObject(part.functionResponse.response))
        yield `${at}: response is no object`
      if (!part.functionCall) continue
      calls.push(part.functionCall.name)
      if (!/^[a-zA-Z_][\w.-]{0,63}$/.test(part.functionCall.name)) yield `${at}: bad name`
      if (!isObject(part.functionCall.args)) yield `${at}: args are no object`
    }
    before = role
  }
  const declared = tools.flatMap((one: Json) => one.functionDeclarations ?? [])
  yield* toolProblems(declared, (one) => one.parameters ?? { type: 'object' })
}
