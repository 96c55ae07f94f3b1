'use client'

import Link from 'next/link'
import { memo } from 'react'
import type { Saying } from '../../lib/link/state.ts'
import type { Turn } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { wordsFor } from '../../lib/words.ts'
import { AskGroup } from '../asks/ask-group.tsx'
import { Settled } from '../asks/settled.tsx'
import { CopyButton } from '../ui/copy-button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Answer } from './answer.tsx'
import { type ShownTurn, sameTurn, wordsOf } from './turns.ts'
import { UserTurn } from './user-turn.tsx'
import { Working } from './working.tsx'

interface TurnProps {
  threadId: string
  turn: ShownTurn
  /** What it did, and what came after it, that stays done whatever is said instead. */
  done: () => string[]
  view: ThreadView
  /** What the server tells of the turn besides its messages, if it has something to tell. */
  detail: Turn | undefined
  /** A change of what was said that did not reach the server. */
  unsent: Saying | undefined
  last: boolean
  running: boolean
}

/** What was said, what came of it, and how it ended. */
export const TurnView = memo(function TurnView(props: TurnProps) {
  const { threadId, turn, view, detail, last, running } = props
  const { link } = view
  const live = last && running
  // Who lost the server before it told that it works does not know that it does.
  const lost = last && view.phase === 'reconnecting'
  const words = wordsOf(turn)
  // One place for live and waiting turns: a card that moves to another place loses the text typed into it.
  const asks = live ? (view.outline?.asks.length ?? 0) > 0 : last && detail?.status === 'waiting'
  const settled = view.outline?.decided
    .filter((ask) => ask.runId === detail?.runId && ask.callId === undefined)
    .filter((ask) => ask.kind !== 'budget') // its call is among the messages
  return (
    <div className="turn" data-run={detail?.runId}>
      {turn.user && (
        <UserTurn
          threadId={threadId}
          message={turn.user}
          done={props.done}
          detail={detail}
          unsent={props.unsent}
          link={link}
          locked={running || view.outline?.status === 'waiting'}
        />
      )}
      {(turn.parts.length > 0 || last || hasEnding(detail) || !!settled?.length) && (
        <article className="answer" aria-label="Answer" aria-busy={live}>
          <Answer turn={turn} view={view} live={live} />
          {(live || lost) && !view.outline?.asks.length && <Working turn={turn} view={view} />}
          {settled?.map((ask) => (
            <Settled key={ask.id} ask={ask} />
          ))}
          {asks && view.outline && <AskGroup outline={view.outline} link={link} />}
          {!live && detail && <Ending detail={detail} view={view} last={last} />}
          {live && words !== '' && <div className="turn-tools" />}
          {!live && words !== '' && (
            <div className="turn-tools" data-last={last || undefined}>
              <CopyButton text={words} label="Copy the answer" />
              {turn.user && (
                <button
                  type="button"
                  className="icon-button"
                  aria-label="Ask again for another answer"
                  title="Ask again for another answer"
                  disabled={running || view.outline?.status === 'waiting'}
                  onClick={() => turn.user && link?.again(turn.user.id)}
                >
                  <Icon name="again" />
                </button>
              )}
              {detail && (
                <Link
                  className="icon-button"
                  aria-label="Look into this run, step by step"
                  title="Look into this run, step by step"
                  href={`/t/${encodeURIComponent(threadId)}/runs/${encodeURIComponent(detail.runId)}`}
                  prefetch={false}
                >
                  <Icon name="search" />
                </Link>
              )}
            </div>
          )}
        </article>
      )}
    </div>
  )
}, same)

/** Old turns look the same whatever happens to the last one. */
function same(a: TurnProps, b: TurnProps): boolean {
  if (a.last || b.last || a.running !== b.running || a.view.link !== b.view.link) return false
  if (a.view.outline !== b.view.outline || a.unsent !== b.unsent) return false
  return sameTurn(a.turn, b.turn)
}

/** Also of a turn that nothing else came of: why is still to be seen when the chat has gone on. */
const hasEnding = (detail: Turn | undefined): boolean =>
  detail?.status === 'failed' || detail?.status === 'cancelled'

function Ending(props: { detail: Turn; view: ThreadView; last: boolean }) {
  const { detail, view, last } = props
  const { status, error, runId } = detail
  if (status === 'cancelled') return <p className="ending">Stopped. What was said is kept.</p>
  if (status !== 'failed' || !error) return null
  return (
    <div className="ending failed">
      <Icon name="alert" />
      <p>{wordsFor(error)}</p>
      {last && (
        <button type="button" className="button" onClick={() => view.link?.retry(runId)}>
          Try again
        </button>
      )}
    </div>
  )
}
