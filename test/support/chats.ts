/** A small client of the chats wire, as an outsider would write it: fetch and a line reader. */
export interface Frame {
  id: string
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
  data: any
}

export interface Stream {
  response: Response
  /** Ends with the stream. */
  frames: AsyncGenerator<Frame, void, undefined>
  /** Reads until a frame of this event, and gives all frames up to it. */
  until(event: string): Promise<Frame[]>
  rest(): Promise<Frame[]>
  /** Milliseconds after which the server would like to be asked again. */
  readonly retry: number | undefined
  leave(): void
}

/** How a request gets to a server. */
export type Send = (path: string, init: RequestInit) => Promise<Response>

export type ChatsClient = ReturnType<typeof chatsClient>

/** `to`: the server's address, or a way to one. */
export function chatsClient(to: string | Send, headers: Record<string, string> = {}) {
  const send: Send = typeof to === 'string' ? (path, init) => fetch(to + path, init) : to
  const request = (
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
  ) =>
    send(path, {
      method,
      headers: {
        ...headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...more,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const open = async (
    method: string,
    path: string,
    body?: unknown,
    more?: Record<string, string>,
    after?: string,
  ) => {
    const gone = new AbortController()
    const response = await send(path, {
      method,
      headers: { ...headers, 'content-type': 'application/json', ...more },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: gone.signal,
    })
    return streamOf(response, gone, after)
  }
  const chat = (id: string) => `/chats/${encodeURIComponent(id)}`
  return {
    request,
    open,
    start: (id: string, text: string, query = '', more?: Record<string, string>) =>
      open('POST', `${chat(id)}/interactions${query}`, { user_message: text }, more),
    edit: (id: string, interaction: string, text: string, query = '') =>
      open('POST', `${chat(id)}/interactions/${interaction}/edit${query}`, {
        new_user_message: text,
      }),
    join: (id: string, interaction: string, after?: string) =>
      open(
        'GET',
        `${chat(id)}/interactions/${interaction}/events${after ? `?after=${after}` : ''}`,
        undefined,
        undefined,
        after,
      ),
    approve: (id: string, interaction: string, body: object, more?: Record<string, string>) =>
      request('POST', `${chat(id)}/interactions/${interaction}/approve`, body, more),
    cancel: (id: string, interaction: string) =>
      request('POST', `${chat(id)}/interactions/${interaction}/cancel`),
    // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON
    chat: async (id: string, query = ''): Promise<any> =>
      (await request('GET', chat(id) + query)).json(),
  }
}

export function streamOf(response: Response, gone: AbortController, after = ''): Stream {
  let retry: number | undefined
  const frames = read(response, after, (ms) => {
    retry = ms
  })
  return {
    response,
    frames,
    get retry() {
      return retry
    },
    async until(event) {
      const seen: Frame[] = []
      for (;;) {
        const { done, value } = await frames.next()
        if (done) throw new Error(`the stream ended before ${event}: ${seen.map((f) => f.event)}`)
        seen.push(value)
        if (value.event === event) return seen
      }
    },
    async rest() {
      const seen: Frame[] = []
      for await (const frame of frames) seen.push(frame)
      return seen
    },
    leave: () => gone.abort(),
  }
}

async function* read(
  response: Response,
  after: string,
  retry: (ms: number) => void,
): AsyncGenerator<Frame, void, undefined> {
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const decoder = new TextDecoder()
  let text = ''
  let last = after
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const block = text.slice(0, end)
      text = text.slice(end + 2)
      const again = /^retry: (\d+)$/m.exec(block)?.[1]
      if (again !== undefined) retry(Number(again))
      const frame = parse(block, last)
      if (!frame) continue
      last = frame.id
      yield frame
    }
  }
}

/** What has no id goes by the last one, as browsers do it. */
function parse(block: string, last: string): Frame | undefined {
  const fields: Record<string, string> = {}
  for (const line of block.split('\n')) {
    if (line.startsWith(':')) continue
    const at = line.indexOf(': ')
    fields[line.slice(0, at)] = line.slice(at + 2)
  }
  if (fields.data === undefined) return undefined
  return { id: fields.id ?? last, event: fields.event ?? 'message', data: JSON.parse(fields.data) }
}

/** What a delta-aware reader has on its screen: message id to text. Retracted ones are gone. */
export function transcript(frames: Iterable<Frame>): Map<string, string> {
  const shown = new Map<string, string>()
  for (const { event, data } of frames) {
    if (event === 'answer_delta')
      shown.set(data.message_id, (shown.get(data.message_id) ?? '') + data.delta)
    if (event === 'answer') shown.set(data.message_id, data.content)
    if (event === 'retracted') for (const id of data.ids) shown.delete(id)
  }
  return shown
}
