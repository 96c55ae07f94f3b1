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
  const written = { text: '', reasoning: '' }
  const shown = { text: 0, reasoning: 0 }
  const held: ModelEvent[] = []

  const release = (kind: Kind, to: number): ModelEvent[] => {
    if (to <= shown[kind]) return []
    const text = written[kind].slice(shown[kind], to)
    shown[kind] = to
    return [{ type: kind, text }]
  }

  /** Looks at what is new, with enough of what was before to find what began there. */
  const decided = (kind: Kind, whole: boolean): number => {
    const text = written[kind]
    const from = Math.max(0, shown[kind] - lookBack)
    const recent = text.slice(from)
    let safe = text.length
    for (const { id: rule, reason, matcher } of denies) {
      if (!matcher) continue
      for (const [start, end] of matcher.matches(recent)) {
        if (start === 0 && from > 0) continue // it begins before: that was looked at then
        // At the very end it may yet turn out to be a part of something else.
        if (whole || end < recent.length) throw denial({ rule, reason })
        safe = Math.min(safe, from + start)
      }
      if (!whole) safe = Math.min(safe, text.length - matcher.open(recent))
    }
    return safe
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
    written[kind] += text
    return [...before, ...release(kind, decided(kind, false))]
  }

  return {
    take(event) {
      if (!waits) return pass(event)
      if (event.type === 'text') written.text += event.text
      held.push(event)
      return []
    },
    end() {
      if (!waits) {
        const found = judgeText(denies, written.text) ?? judgeText(denies, written.reasoning)
        if (found) throw denial(found)
        return flush()
      }
      const found = written.text === '' ? undefined : judgeText(rules, written.text)
      if (found) throw denial(found)
      return held
    },
  }
}

const denial = ({ rule, reason }: Denial) =>
  new RuntimeError('guardrail', reason, { data: { where: 'output', rule, reason } })
