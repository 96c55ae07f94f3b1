'use client'

import type { JournalEntry } from '../../lib/shapes.ts'
import { brief, duration } from '../../lib/words.ts'
import { CopyButton } from '../ui/copy-button.tsx'
import { wordsOf } from './moment.ts'

/** All entries in order. Those after the chosen point had not happened yet, and look so. */
export function Timeline(props: {
  entries: readonly JournalEntry[]
  at: number
  first: number
  took: ReadonlyMap<number, number>
  onPoint: (point: number) => void
}) {
  const { entries, at, first, took, onPoint } = props
  return (
    <ol className="timeline" aria-label="Entries">
      {entries.map((entry, i) => (
        <li key={entry.seq} data-later={i >= at || undefined}>
          <details onToggle={(event) => event.currentTarget.open && onPoint(i + 1)}>
            <summary>
              <span className="when">{duration(Date.parse(entry.at) - first)}</span>
              <span className="kind" data-group={entry.kind.split('.')[0]}>
                {entry.kind}
              </span>
              <span className="what">{brief(wordsOf(entry), 140)}</span>
              {took.has(entry.seq) && (
                <span className="quiet">{duration(took.get(entry.seq)!)}</span>
              )}
            </summary>
            <Whole entry={entry} />
          </details>
        </li>
      ))}
    </ol>
  )
}

function Whole({ entry }: { entry: JournalEntry }) {
  const { seq, at, actor, leg, body, size } = entry
  const text =
    body === null
      ? `${size.toLocaleString()} characters are too many for a list.`
      : JSON.stringify(body, null, 2)
  return (
    <div className="tool-field">
      <p>
        <span>
          {seq} · {new Date(at).toLocaleString()} · {actor.type} {actor.id}
          {actor.wire !== undefined && ` over ${actor.wire}`}
          {leg !== undefined && ` · ${leg}`}
        </span>
        <CopyButton text={text} label={`Copy entry ${seq}`} />
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre tabIndex={0}>{text}</pre>
    </div>
  )
}
