'use client'

import { type ReactNode, useEffect, useState } from 'react'
import type { Face, Shared, Station } from '../../lib/analysis.ts'
import { duration } from '../../lib/words.ts'
import { CopyButton } from '../ui/copy-button.tsx'
import { Icon, type IconName, Spinner } from '../ui/icon.tsx'
import { AccountView } from './account.tsx'
import { PastView } from './past.tsx'
import { Recommendations } from './recommendation.tsx'

const icons: Partial<Record<Face, IconName>> = {
  waiting: 'clock',
  asking: 'inbox',
  done: 'check',
  failed: 'alert',
  skipped: 'close',
  stopped: 'close',
}

/** A stop on the way, whoever works there. */
export function Stop(props: {
  title: string
  face: Face
  words: string
  aside?: ReactNode
  children?: ReactNode
}) {
  const { title, face, words, aside, children } = props
  const icon = icons[face]
  return (
    <li className="station" data-face={face}>
      <span className="station-mark" aria-hidden="true">
        {icon ? <Icon name={icon} /> : <Spinner />}
      </span>
      <div className="station-body">
        <header>
          <h2>{title}</h2>
          <span className="station-state">{words}</span>
          {aside}
        </header>
        {children}
      </div>
    </li>
  )
}

export const faceWords: Record<Face, string> = {
  waiting: 'waiting',
  working: 'working',
  asking: 'needs you',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
  stopped: 'stopped',
}

/** One agent: how it stands, how long it takes, and what it has found. */
export function StationView({ station, shared }: { station: Station; shared: Shared }) {
  const { key, agent, title, task, face, failures, error, tokens } = station
  const took = useTook(station)
  const result = shared[key]
  return (
    <Stop
      title={title}
      face={face}
      words={faceWords[face]}
      aside={took !== undefined && <span className="station-time">{duration(took)}</span>}
    >
      <p className="quiet">
        <code>{agent}</code> {task}
        {failures > 0 && face === 'working' && ` It failed before and is tried again.`}
      </p>
      {error && (
        <p className="station-error">
          {error.words}{' '}
          {error.critical
            ? 'The analysis cannot go on without this.'
            : 'The analysis goes on without it.'}
        </p>
      )}
      {result !== undefined && result !== null && (
        <div className="result">
          {key === 'account_snapshot' && shared.account_snapshot && (
            <AccountView account={shared.account_snapshot} />
          )}
          {key === 'historical_context' && shared.historical_context && (
            <PastView past={shared.historical_context} />
          )}
          {key === 'recommendations' && shared.recommendations && (
            <Recommendations list={shared.recommendations} />
          )}
          <Raw value={result} of={title} />
          {tokens !== undefined && tokens.input_tokens + tokens.output_tokens > 0 && (
            <p className="note">
              {tokens.input_tokens.toLocaleString()} tokens in,{' '}
              {tokens.output_tokens.toLocaleString()} out
            </p>
          )}
        </div>
      )}
    </Stop>
  )
}

function Raw({ value, of }: { value: unknown; of: string }) {
  const text = JSON.stringify(value, null, 2)
  return (
    <details className="exact">
      <summary>
        As JSON<span className="visually-hidden">: {of}</span>
      </summary>
      <div className="tool-field">
        <p>
          All of it <CopyButton text={text} label={`Copy as JSON: ${of}`} />
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
        <pre tabIndex={0}>{text}</pre>
      </div>
    </details>
  )
}

function useTook({ face, startedAt, took }: Station): number | undefined {
  const ticking = face === 'working'
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!ticking) return
    const timer = setInterval(() => setNow(Date.now()), 250)
    return () => clearInterval(timer)
  }, [ticking])
  if (took !== undefined) return took
  return ticking && startedAt !== undefined ? Math.max(0, now - startedAt) : undefined
}
