import { newId } from '../../lib/ids.ts'
import { escaped, slices, unhurried } from '../../lib/json-steps.ts'
import { jsonText } from '../http.ts'
import type { RuntimeEvent } from './events.ts'
import type { LoadedText } from './shapes.ts'

/** Characters of a text that is written into the result itself. */
const shortLength = 10_000
/** Characters of one step of a text that is at hand. */
const stepLength = 200_000

/** Texts of a response that are too long to serialize at once. A marker stands for each of them in the result. */
export class LongTexts {
  /** Random and never sent to a client, so no client can write a marker. */
  readonly #secret = newId('long')
  readonly #steps: (() => AsyncIterable<string>)[] = []

  /** Returns the marker of a text that is made in steps. A document may ask for the same text twice. */
  add(steps: () => AsyncIterable<string>): string {
    return `${this.#secret}-${this.#steps.push(steps) - 1}.`
  }

  /** The text itself, or its marker if it is long: a document may select it under many aliases. */
  placed(text: LoadedText): string {
    if (typeof text !== 'string') return this.add(text)
    return text.length <= shortLength ? text : this.add(() => unhurried(slices(text, stepLength)))
  }

  /** The event with a marker in place of a long text. */
  marked<E extends RuntimeEvent>(event: E): E & { state?: string } {
    if (event.type !== 'AgentStateMessage' || typeof event.state === 'string')
      return event as E & { state?: string }
    return { ...event, state: this.add(event.state.steps) }
  }

  /** The JSON response with the texts in place of their markers. They are made at the reader's pace. */
  async fill(response: Response): Promise<Response> {
    const { status, headers } = response
    // A response in parts fills each part when it is sent.
    const isJson = /^application\/([\w-]+\+)?json/.test(headers.get('content-type') ?? '')
    if (this.#steps.length === 0 || !isJson) return response
    return jsonText(this.filled(await response.text()), status, Object.fromEntries(headers))
  }

  /** Whether a JSON text contains a marker. */
  isIn(json: string): boolean {
    return this.#steps.length > 0 && json.includes(this.#secret)
  }

  /** A JSON text with the texts in place of their markers, in steps. Keeps none of the texts. */
  async *filled(json: string): AsyncGenerator<string, void, undefined> {
    for (const part of this.#split(json)) {
      if (typeof part === 'string') yield part
      else yield* this.#escaped(part)
    }
  }

  /** The number of bytes that `filled` yields. Makes each text once, even if it has several markers, and keeps none. */
  async byteLength(json: string): Promise<number> {
    const lengths = new Map<number, number>()
    let bytes = 0
    for (const part of this.#split(json)) {
      if (typeof part === 'string') {
        bytes += Buffer.byteLength(part)
        continue
      }
      let length = lengths.get(part) ?? 0
      if (!lengths.has(part))
        for await (const step of this.#escaped(part)) length += Buffer.byteLength(step)
      lengths.set(part, length)
      bytes += length
    }
    return bytes
  }

  /** The parts of a JSON text: text, or the number of the long text that a marker stands for. */
  *#split(json: string): Generator<string | number, void, undefined> {
    const [first = '', ...others] = json.split(`${this.#secret}-`)
    yield first
    for (const other of others) {
      const end = other.indexOf('.')
      yield Number(other.slice(0, end))
      yield other.slice(end + 1)
    }
  }

  async *#escaped(text: number): AsyncGenerator<string, void, undefined> {
    for await (const step of this.#steps[text]!()) yield escaped(step)
  }
}
