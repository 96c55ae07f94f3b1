'use client'

import { useEffect, useRef } from 'react'
import { analyst, type Shared } from '../../lib/analysis.ts'
import { isRunning } from '../../lib/link/state.ts'
import { useRuntime } from '../../lib/runtime.tsx'
import { type ThreadView, useLink } from '../../lib/use-link.ts'
import { useNews } from '../chat/use-news.ts'
import { useListed } from '../threads/use-listed.ts'
import { Choose } from './choose.tsx'
import { Course } from './course.tsx'
import { AnalysisHeader } from './header.tsx'
import { NoAnalysis } from './no-analysis.tsx'
import { Elsewhere, Gone } from './notes.tsx'

/** The analysis of one account, at its own address: a thread like any other, shown as what it is made of. */
export function Analysis({ threadId }: { threadId: string }) {
  const there = useRuntime().agents.some(({ name }) => name === analyst)
  return there ? <Followed threadId={threadId} /> : <NoAnalysis />
}

function Followed({ threadId }: { threadId: string }) {
  const view = useLink(threadId, analyst)
  useNews(view, 'The analysis is finished.')
  useListed(view)
  const shared = useShared(view)
  const account = shared.account_id ?? undefined
  const title = account === undefined ? 'Account analysis' : `${account}: analysis`
  const { outline } = view
  useEffect(() => {
    document.title = `${outline?.status === 'waiting' ? '● ' : ''}${title} · Handrail`
  }, [title, outline?.status])
  return (
    <div className="inbox analysis">
      <AnalysisHeader threadId={threadId} view={view} title={title} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <section className="scroller" aria-label="Analysis" tabIndex={0}>
        <div className="column">
          <Body threadId={threadId} view={view} shared={shared} />
        </div>
      </section>
    </div>
  )
}

function Body(props: { threadId: string; view: ThreadView; shared: Shared }) {
  const { threadId, view, shared } = props
  const { phase, outline, saying } = view
  if (phase === 'gone') return <Gone />
  const agent = outline?.turns.at(-1)?.agent
  if (agent !== undefined && agent !== analyst) return <Elsewhere threadId={threadId} />
  const begun = outline && outline.turns.length > 0
  // The server may be gone before it could tell more than the agent's state.
  if (begun || saying || shared.run_id !== undefined)
    return <Course threadId={threadId} view={view} shared={shared} />
  if (phase === 'loading' || phase === 'catching-up')
    return (
      <div className="skeleton" aria-busy="true">
        <span />
        <span />
        <span />
      </div>
    )
  return <Choose view={view} />
}

/**
 * The agent's state, if it is of the run that is shown: the last one's is there until the next has begun.
 * CopilotKit forgets it when it connects anew, until the server tells it again; what was shown stays.
 */
function useShared(view: ThreadView): Shared {
  const kept = useRef<Shared>({})
  const told = (view.agentState ?? {}) as Shared
  if (told.run_id !== undefined) kept.current = told
  const run = view.outline?.turns.at(-1)?.runId
  const old = run !== undefined && kept.current.run_id !== run && !isRunning(view)
  return old ? {} : kept.current
}
