import type { Frame, Stream } from '../support/chats.ts'

/** What a client that shows deltas has of one interaction. */
export class Screen {
  /** Every frame that stands for an entry, in order: the same for all readers in the end. */
  readonly entries: string[] = []
  /** Texts that are being written, by kind and id. */
  readonly open = new Map<string, string>()
  readonly problems: string[] = []

  take({ id, event, data }: Frame): void {
    switch (event) {
      case 'governor':
        return // how things stand when it is told, and no part of what happened
      case 'answer_delta':
        this.#grow(`text ${data.message_id}`, data.delta)
        return
      case 'thinking_delta':
        this.#grow(`reasoning ${data.message_id}`, data.delta)
        return
      case 'tool_output':
        this.#grow(`output ${data.id}`, data.delta)
        return
      case 'retracted':
        for (const kind of ['text', 'reasoning', 'output']) {
          for (const gone of data.ids) this.open.delete(`${kind} ${gone}`)
        }
        if (data.why === 'resent') return // said to this reader alone
        break
      case 'thinking':
        if (!this.#close(`reasoning ${data.message_id}`, data.content))
          this.#close(`text ${data.message_id}`, data.content)
        break
      case 'answer':
        this.#close(`text ${data.message_id}`, data.content)
        break
      case 'tool_call':
        this.open.delete(`output ${data.id}`) // made again: its output begins anew
        break
      case 'tool_result':
        this.#close(`output ${data.id}`, data.tool_output)
        break
    }
    // What follows the place names the stream, and how much was sent to this reader.
    const [place = ''] = id.split(/[!@]/, 1)
    const [seq, part] = place.split('~')
    const of = part === undefined ? seq : Number(seq) + 1 // `4~1` is a part of entry 5
    this.entries.push(`${of} ${event} ${JSON.stringify(data)}`)
    if (event !== 'interaction_complete') return
    for (const key of this.open.keys()) {
      if (!key.startsWith('output ')) this.problems.push(`still open at the end: ${key}`)
    }
  }

  /** What it came to: an end that was taken back by a retry is none to who reads it now. */
  get story(): string {
    const { entries } = this
    const last = entries.findLastIndex(isEnd)
    return entries.filter((entry, n) => !isEnd(entry) || n === last).join('\n')
  }

  copy(): Screen {
    const copy = new Screen()
    copy.entries.push(...this.entries)
    for (const [key, text] of this.open) copy.open.set(key, text)
    return copy
  }

  #grow(key: string, delta: string): void {
    this.open.set(key, (this.open.get(key) ?? '') + delta)
  }

  /** The whole text arrives: what was shown of it must be its beginning, no word twice. */
  #close(key: string, whole: string): boolean {
    const shown = this.open.get(key)
    if (shown === undefined) return false
    this.open.delete(key)
    // Only a call that ended by itself repeats what it had put out.
    const other = key.startsWith('output ') && !/^count\w* [\d.]+: done$/.test(whole)
    if (!whole.startsWith(shown) && !other)
      this.problems.push(`${key} showed ${JSON.stringify(shown)} of ${JSON.stringify(whole)}`)
    return true
  }
}

const isEnd = (entry: string) => /^\d+ interaction_complete /.test(entry)

/** One client of one interaction: it keeps what it has and its cursor, whoever serves it. */
export class Reader {
  readonly chatId: string
  readonly interactionId: string
  readonly screen = new Screen()
  /** Where it was at some moments, to come back from there at the end. */
  readonly earlier: { last: string; screen: Screen }[] = []
  last: string | undefined
  over = false
  attached = false
  #pieces = 0

  constructor(chatId: string, interactionId: string) {
    this.chatId = chatId
    this.interactionId = interactionId
  }

  /** Reads to the end of the stream, of the server, or of its patience. */
  async follow(stream: Stream, patience: number, news: () => void): Promise<void> {
    this.attached = true
    try {
      for await (const frame of stream.frames) {
        this.screen.take(frame)
        this.last = frame.id
        if (frame.event === 'interaction_complete') this.over = true
        if (frame.id.includes('.') && ++this.#pieces % 25 === 3 && this.earlier.length < 3)
          this.earlier.push({ last: frame.id, screen: this.screen.copy() })
        if (!frame.event.endsWith('_delta')) news()
        if (--patience <= 0) break
      }
    } catch {
      // The server died in the middle of a frame or of silence: both are the end of this stream.
    }
    stream.leave()
    this.attached = false
    news()
  }
}
