import type { Bench } from './effects.ts'
import { draft } from './entries.ts'
import type { Model, ModelRequest } from './model.ts'
import { fitted, requestTokens } from './window.ts'

/** By the name of the model. */
export type Windows = Readonly<Record<string, number>>

/** Times that a request is made shorter because the provider finds it too long. */
const shrinkings = 4

/** The request as it fits into a model's window; what is left out is told. */
export class Fitting {
  readonly #request: ModelRequest
  readonly #bench: Bench
  readonly #name: string
  #room: number
  #shrunk = 0
  #sent: ModelRequest

  constructor(model: Model, request: ModelRequest, windows: Windows, bench: Bench) {
    this.#request = request
    this.#sent = request
    this.#bench = bench
    this.#name = model.name
    // Of a model that says nothing, nothing is known until it refuses.
    const window = windows[model.name] ?? model.window ?? Number.POSITIVE_INFINITY
    const answer = request.parameters?.maxOutputTokens ?? Math.min(8_192, window / 4)
    this.#room = Math.max(window / 4, window - answer)
  }

  request(): ModelRequest {
    const { channel, leg } = this.#bench
    const { request, from, left, cut } = fitted(this.#request, this.#room, leg.thread.state.cuts)
    if (from !== undefined || cut > 0) {
      const about = { model: this.#name, room: Math.floor(this.#room), left, cut }
      const value = from === undefined ? about : { ...about, from }
      channel.write(draft('event', { name: 'context', value }))
    }
    this.#sent = request
    return request
  }

  /** Less room than the last request took; false if that was tried often enough, or nothing can be left out. */
  shrink(): boolean {
    if (++this.#shrunk > shrinkings) return false
    const sent = requestTokens(this.#sent)
    this.#room = Math.min(this.#room, sent) * 0.6
    const next = fitted(this.#request, this.#room, this.#bench.leg.thread.state.cuts)
    return requestTokens(next.request) < sent
  }
}
