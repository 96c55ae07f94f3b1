'use client'

import { decisionOf, type Shared, stationsOf } from '../../lib/analysis.ts'
import { isRunning } from '../../lib/link/state.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { Decision } from './decision.tsx'
import { Ending } from './ending.tsx'
import { StationView } from './station.tsx'
import { useStationNews } from './use-station-news.ts'

/** An analysis as a timeline: three agents, then the person who decides. */
export function Course(props: { threadId: string; view: ThreadView; shared: Shared }) {
  const { threadId, view, shared } = props
  const { outline, link, stopping } = view
  const running = isRunning(view)
  const run = running ? 'running' : outline?.turns.at(-1)?.status
  const asks = running ? [] : (outline?.asks ?? [])
  const stations = stationsOf(shared, run)
  useStationNews(shared.run_id, stations)
  return (
    <>
      {asks[0] && (
        <p className="needs">
          <span className="badge attention">Needs you</span> {asks[0].title}
          <button
            type="button"
            className="button plain"
            onClick={() => goTo(document.querySelector<HTMLElement>('.analysis .ask-group h2'))}
          >
            Show what is asked
          </button>
        </p>
      )}
      <ol className="course" aria-label="Steps of the analysis" aria-busy={running}>
        {stations.map((station) => (
          <StationView key={station.key} station={station} shared={shared} />
        ))}
        <Decision view={view} face={decisionOf(shared, run, asks.length > 0)} asks={asks} />
      </ol>
      {view.phase === 'reconnecting' && (
        <p className="working">
          The connection is lost. Trying again… The analysis may have gone on meanwhile.
        </p>
      )}
      {running && (
        <p className="actions">
          <button
            type="button"
            className="button stop"
            disabled={stopping || !link}
            onClick={() => void link?.stop()}
          >
            {stopping ? 'Stopping…' : 'Stop the analysis'}
          </button>
        </p>
      )}
      {!running && <Ending threadId={threadId} view={view} shared={shared} />}
    </>
  )
}

/** Onto the heading, and nothing that decides. */
function goTo(heading: HTMLElement | null): void {
  heading?.scrollIntoView({ block: 'start' })
  heading?.focus({ preventScroll: true })
}
