/** The four wire formats, as far as their streams go: what real providers send, piece by piece. */
export interface Wire {
  matches(path: string): boolean
  /** Text of the request that came last from the user. */
  asked(body: Json): string
  begin(): string
  text(piece: string): string
  /** A call as its input is written; a wire that sends calls whole sends it at the end. */
  call(id: string, name: string, pieces: readonly string[]): string[]
  /** The same as far as it gets when it is cut in the middle of the input. */
  half(id: string, name: string, pieces: readonly string[]): string
  end(calls: boolean): string
  /** The body of a refusal. */
  error(status: number, message: string, type?: string): Json
}

// biome-ignore lint/suspicious/noExplicitAny: other people's JSON, looked into by tests
export type Json = any

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const named = (type: string, value: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`

const lastText = (content: Json): string =>
  typeof content === 'string'
    ? content
    : (content ?? []).map((part: Json) => part.text ?? '').join(' ')

const lastUser = (messages: Json[]): string =>
  lastText((messages ?? []).findLast((one) => one.role === 'user')?.content)

const chunk = (delta: object, finish_reason: string | null = null) =>
  data({ id: 'x', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })

export const chat: Wire = {
  matches: (path) => path.endsWith('/chat/completions'),
  asked: ({ messages }) => lastUser(messages),
  begin: () => chunk({ role: 'assistant', content: '' }),
  text: (content) => chunk({ content }),
  call: (id, name, pieces) => [
    chunk({ tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: '' } }] }),
    ...pieces.map((one) => chunk({ tool_calls: [{ index: 0, function: { arguments: one } }] })),
  ],
  half: (id, name, pieces) => chat.call(id, name, pieces).join(''),
  end: (calls) => `${chunk({}, calls ? 'tool_calls' : 'stop')}data: [DONE]\n\n`,
  error: (_status, message, type = 'invalid_request_error') => ({ error: { message, type } }),
}

export const responses: Wire = {
  matches: (path) => path.endsWith('/responses'),
  asked: ({ input }) => lastUser(input),
  begin: () =>
    named('response.created', { response: { id: 'r', created_at: 1, model: 'm' } }) +
    named('response.output_item.added', { output_index: 0, item: { type: 'message', id: 'msg' } }),
  text: (delta) => named('response.output_text.delta', { item_id: 'msg', delta }),
  call: (call_id, name, pieces) => {
    const item = { type: 'function_call', id: `fc_${call_id}`, call_id, name }
    const about = { item_id: item.id, output_index: 1 }
    const whole = { ...item, arguments: pieces.join(''), status: 'completed' }
    return [
      named('response.output_item.added', { output_index: 1, item: { ...item, arguments: '' } }),
      ...pieces.map((delta) =>
        named('response.function_call_arguments.delta', { ...about, delta }),
      ),
      named('response.output_item.done', { output_index: 1, item: whole }),
    ]
  },
  half: (id, name, pieces) => responses.call(id, name, pieces).slice(0, -1).join(''),
  end: () =>
    named('response.completed', { response: { usage: { input_tokens: 1, output_tokens: 1 } } }),
  error: (_status, message, type = 'invalid_request_error') => ({
    error: { message, type, code: null, param: null },
  }),
}

export const messages: Wire = {
  matches: (path) => path.endsWith('/messages'),
  asked: ({ messages }) => lastUser(messages),
  begin: () =>
    named('message_start', {
      message: {
        id: 'm',
        model: 'm',
        role: 'assistant',
        usage: { input_tokens: 1, output_tokens: 0 },
      },
    }) + named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  text: (text) => named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  call: (id, name, pieces) => [
    named('content_block_start', {
      index: 1,
      content_block: { type: 'tool_use', id, name, input: {} },
    }),
    ...pieces.map((partial_json) =>
      named('content_block_delta', { index: 1, delta: { type: 'input_json_delta', partial_json } }),
    ),
    named('content_block_stop', { index: 1 }),
  ],
  half: (id, name, pieces) => messages.call(id, name, pieces).slice(0, -1).join(''),
  end: (calls) =>
    named('content_block_stop', { index: 0 }) +
    named('message_delta', {
      delta: { stop_reason: calls ? 'tool_use' : 'end_turn' },
      usage: { output_tokens: 1 },
    }) +
    named('message_stop', {}),
  error: (_status, message, type = 'invalid_request_error') => ({
    type: 'error',
    error: { type, message },
  }),
}

const candidate = (parts: object[], more: object = {}) =>
  data({ candidates: [{ index: 0, content: { role: 'model', parts }, ...more }] })

export const gemini: Wire = {
  matches: (path) => path.includes(':streamGenerateContent'),
  asked: ({ contents }) =>
    (contents ?? [])
      .findLast((one: Json) => one.role === 'user' && one.parts.some((part: Json) => part.text))
      ?.parts.map((part: Json) => part.text ?? '')
      .join(' ') ?? '',
  begin: () => '',
  text: (text) => candidate([{ text }]),
  call: (_id, name, pieces) => {
    const args = JSON.parse(pieces.join('')) as object
    return [candidate([{ functionCall: { name, args } }])]
  },
  half: (id, name) => gemini.call(id, name, ['{"city":"Paris"}'])[0]!.slice(0, 70),
  end: () =>
    data({
      candidates: [{ index: 0, content: { role: 'model', parts: [] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
    }),
  error: (code, message, status = 'INVALID_ARGUMENT') => ({ error: { code, message, status } }),
}

export const wires = { chat, responses, messages, gemini }
export type WireName = keyof typeof wires
