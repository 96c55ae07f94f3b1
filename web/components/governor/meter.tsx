'use client'

import type { Budget, Measure } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { Panel } from '../ui/panel.tsx'
import { ChatLimits, PlannedLimits } from './limits.tsx'

/** What the chat has used of what it may use before somebody is asked. Always there. */
export function Meter({ threadId, view }: { threadId: string; view: ThreadView }) {
  const { governor, link, outline } = view
  if (!governor || !outline) return <Planned view={view} />
  const { isHitlEnabled: on, actionLimit, actionsUsed, total } = governor
  const spent = on && actionsUsed >= actionLimit
  return (
    <Panel
      className="meter"
      title="Budget"
      label={
        <>
          <span className="visually-hidden">Budget: </span>
          {on && <Bar used={actionsUsed} limit={actionLimit} />}
          <span className="meter-words" data-spent={spent || undefined}>
            {on
              ? `${actionsUsed} / ${actionLimit} calls`
              : `${total} ${total === 1 ? 'call' : 'calls'}`}
          </span>
          {on && <More budget={governor} />}
          {!on && <span className="badge">no limit</span>}
        </>
      }
    >
      {(close) => (
        <ChatLimits
          threadId={threadId}
          onSet={() => {
            link?.refresh()
            close()
          }}
        />
      )}
    </Panel>
  )
}

/** A chat that has not begun has no budget yet: it is planned, and set with the first message. */
function Planned({ view: { planned, link, phase } }: { view: ThreadView }) {
  if (phase === 'loading' || !link) return <p className="meter quiet">No calls yet</p>
  const words = planned?.isHitlEnabled ? `0 / ${planned.actionLimit} calls` : 'No calls yet'
  return (
    <Panel
      className="meter"
      title="Budget"
      label={
        <>
          <span className="visually-hidden">Budget: </span>
          <span className="meter-words">{words}</span>
        </>
      }
    >
      {(close) => (
        <PlannedLimits
          planned={planned}
          onPlan={(budget) => {
            link.plan(budget)
            close()
          }}
        />
      )}
    </Panel>
  )
}

function Bar({ used, limit }: { used: number; limit: number }) {
  const part = limit === 0 ? 1 : Math.min(1, used / limit)
  return (
    <span className="bar" aria-hidden="true" data-level={part >= 1 ? 'spent' : undefined}>
      <span style={{ width: `${part * 100}%` }} />
    </span>
  )
}

/** Tokens and money are on the meter where they are limited. */
function More({ budget: { tokens, money } }: { budget: Budget }) {
  const short = ({ used, limit }: Measure) => `${shown(used)} / ${shown(limit ?? 0)}`
  return (
    <>
      {tokens.limit !== null && <span className="meter-words">{short(tokens)} tokens</span>}
      {money.limit !== null && <span className="meter-words">{short(money)} money</span>}
    </>
  )
}

const shown = (value: number) => value.toLocaleString([], { maximumFractionDigits: 4 })
