'use client'

import { useEffect, useState } from 'react'
import type { AskSummary, CallStanding } from '../../lib/shapes.ts'
import { duration } from '../../lib/words.ts'
import { CopyButton } from '../ui/copy-button.tsx'
import { Icon, type IconName, Spinner } from '../ui/icon.tsx'

interface ToolCallProps {
  name: string
  /** JSON text, perhaps not all of it yet. */
  input: string
  /** The approver changed the arguments: `input` is what ran. */
  edited: boolean
  result: string | undefined
  /** What it has printed so far. */
  output: string | undefined
  standing: CallStanding | undefined
  ask: AskSummary | undefined
  /** It is decided, and waits for what else its step waits for. */
  held: boolean
  /** A person has answered in its place. */
  instead: boolean
  /** The turn that it belongs to still runs. */
  live: boolean
}

type Face =
  | 'asked'
  | 'waiting'
  | 'held'
  | 'instead'
  | 'running'
  | 'done'
  | 'failed'
  | 'unknown'
  | 'left'

const faces: Record<Face, { words: string; icon?: IconName }> = {
  asked: { words: 'asked for' },
  waiting: { words: 'waits for a decision', icon: 'clock' },
  held: { words: 'decided, waits for the others', icon: 'clock' },
  instead: { words: 'not called, answered instead', icon: 'edit' },
  running: { words: 'running' },
  done: { words: 'done', icon: 'check' },
  failed: { words: 'not done', icon: 'alert' },
  unknown: { words: 'outcome unknown', icon: 'alert' },
  left: { words: 'not carried out', icon: 'close' },
}

/** One call of a tool: how it stands, how long it took, what went in and what came out. */
export function ToolCall(props: ToolCallProps) {
  const { name, input, edited, result, output, standing } = props
  const face = faceOf(props)
  const { words, icon } = faces[face]
  const took = useDuration(standing, face === 'running')
  const shown = result ?? output
  return (
    <details className="tool-call" data-face={face}>
      <summary>
        {icon ? <Icon name={icon} /> : <Spinner />}
        <span className="tool-name">{name.replace(/_+/g, ' ')}</span>
        <span className="tool-state">{words}</span>
        {edited && <span className="badge">edited</span>}
        {standing?.grantId !== undefined && (
          <span
            className="badge"
            title="Not asked about: a permission was given earlier in this chat"
          >
            allowed earlier
          </span>
        )}
        {took !== undefined && <span className="tool-time">{duration(took)}</span>}
        <Icon name="chevron" />
      </summary>
      <Field label={edited ? 'Input, edited by the approver' : 'Input'} text={pretty(input)} />
      {shown !== undefined && (
        <Field label={result === undefined ? 'Output so far' : 'Output'} text={pretty(shown)} />
      )}
    </details>
  )
}

function faceOf({ result, standing, ask, held, instead, live }: ToolCallProps): Face {
  if (instead) return 'instead'
  if (standing && standing.state !== 'running') return standing.state
  if (result !== undefined) return 'done'
  if (ask) return 'waiting'
  if (held && !standing) return 'held'
  if (standing) return live ? 'running' : 'unknown'
  return live ? 'asked' : 'left'
}

function Field({ label, text }: { label: string; text: string }) {
  return (
    <div className="tool-field">
      <p>
        {label} <CopyButton text={text} label={`Copy the ${label.toLowerCase()}`} />
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre tabIndex={0}>{text}</pre>
    </div>
  )
}

function useDuration(standing: CallStanding | undefined, ticking: boolean): number | undefined {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!ticking) return
    const timer = setInterval(() => setNow(Date.now()), 250)
    return () => clearInterval(timer)
  }, [ticking])
  if (standing?.startedAt === undefined) return undefined
  if (standing.endedAt !== undefined) return standing.endedAt - standing.startedAt
  return ticking ? Math.max(0, now - standing.startedAt) : undefined
}

/** JSON is laid out; anything else, and JSON that is still being written, is shown as it is. */
function pretty(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? JSON.stringify(value, null, 2) : text
  } catch {
    return text
  }
}
