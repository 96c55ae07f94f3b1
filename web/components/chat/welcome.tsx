'use client'

import Link from 'next/link'
import type { AgentInfo } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { Mark } from '../ui/icon.tsx'

/** A chat in which nothing was said yet, or that is on its way. */
export function Welcome({ view, agent }: { view: ThreadView; agent: AgentInfo | undefined }) {
  const { phase, link, outline } = view
  if (phase === 'gone')
    return (
      <div className="scroller page-note">
        <h2>This chat was deleted</h2>
        <p>What is said here now begins a new one.</p>
      </div>
    )
  if (phase === 'nowhere')
    return (
      <div className="scroller page-note">
        <h2>There is no such chat</h2>
        <p>
          <Link className="button" href="/">
            Begin a new one
          </Link>
        </p>
      </div>
    )
  if (phase === 'loading' || (outline && outline.turns.length > 0))
    return (
      <div className="scroller" aria-busy="true">
        <div className="column skeleton" aria-hidden="true">
          <span />
          <span />
          <span />
        </div>
      </div>
    )
  return (
    <div className="scroller welcome">
      <Mark />
      <h2>What shall we do?</h2>
      {agent?.description && <p className="quiet">{agent.description}</p>}
      {agent?.suggestions && (
        <ul className="ideas" aria-label="Suggestions">
          {agent.suggestions.map((text) => (
            <li key={text}>
              <button type="button" className="button" onClick={() => link?.say({ content: text })}>
                {text}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
