import { RuntimeError } from '../core/errors.ts'
import type { Denial, OutputWatch } from '../core/guard.ts'
import type { ModelEvent } from '../core/model.ts'
import { judgeText, type Rule } from './rules.ts'

type Kind = 'text' | 'reasoning'

/**
 * Watches one message while it is written. What may be the beginning of something forbidden is held back
 * until it is known; what has been shown before that was known is taken back with the message. With
 * rules that allow, nothing is shown before the message is whole.
 */
export function watchOutput(rules: readonly Rule[], lookBack: number): OutputWatch {
  const denies = rules.filter(({ decision }) => decision === 'deny')
  const waits = rules.length > denies.length
  const texts = { text: new Written(), reasoning: new Written() }
  const held: ModelEvent[] = []

  const release = (kind: Kind, to: number): ModelEvent[] => {
    const text = texts[kind].show(to, lookBack)
    return text === '' ? [] : [{ type: kind, text }]
  }

  /** Looks at what is new, with enough of what was before to find what began there. */
  const decided = (kind: Kind, whole: boolean): number => {
    const { recent, from } = texts[kind]
    let safe = recent.length
    for (const { id: rule, reason, matcher } of denies) {
      if (!matcher) continue
      for (const match of matcher.matches(recent)) {
        if (!match) continue
        const [start, end] = match
        if (start === 0 && from > 0) continue // it begins before: that was looked at then
        // At the very end it may yet turn out to be a part of something else.
        if (whole || end < recent.length) throw denial({ rule, reason })
        safe = Math.min(safe, start)
      }
      if (!whole) safe = Math.min(safe, recent.length - matcher.open(recent))
    }
    return from + safe
  }

  /** Other things come between: what was said before them is shown before them. */
  const flush = (): ModelEvent[] =>
    (['reasoning', 'text'] as const).flatMap((kind) => release(kind, decided(kind, true)))

  const pass = (event: ModelEvent): ModelEvent[] => {
    if (event.type === 'usage') return [event]
    if (event.type !== 'text' && event.type !== 'reasoning') return [...flush(), event]
    const { type: kind, text } = event
    const other = kind === 'text' ? 'reasoning' : 'text'
    const before = release(other, decided(other, true))
    texts[kind].add(text)
    return [...before, ...release(kind, decided(kind, false))]
  }

  return {
    take(event) {
      if (!waits) return pass(event)
      if (event.type === 'text') texts.text.add(event.text)
      held.push(event)
      return []
    },
    end() {
      if (!waits) {
        const [said, thought] = [texts.text.whole(), texts.reasoning.whole()]
        const found = judgeText(denies, said) ?? judgeText(denies, thought)
        if (found) throw denial(found)
        return flush()
      }
      const said = texts.text.whole()
      const found = said === '' ? undefined : judgeText(rules, said)
      if (found) throw denial(found)
      return held
    },
  }
}

/** A text that grows; what was shown long ago is not looked at with every piece. */
class Written {
  /** The end of it, which begins `from` characters into it. */
  recent = ''
  from = 0
  #shown = 0
  readonly #parts: string[] = []

  add(text: string): void {
    this.#parts.push(text)
    this.recent += text
  }

  /** What is shown when it is shown that far. */
  show(to: number, lookBack: number): string {
    if (to <= this.#shown) return ''
    const text = this.recent.slice(this.#shown - this.from, to - this.from)
    this.#shown = to
    const cut = Math.max(0, to - lookBack - this.from)
    this.recent = this.recent.slice(cut)
    this.from += cut
    return text
  }

  whole = (): string => this.#parts.join('')
}

const denial = ({ rule, reason }: Denial) =>
  new RuntimeError('guardrail', reason, { data: { where: 'output', rule, reason } })
