'use client'

import { useEffect, useRef } from 'react'
import { isRunning } from '../../lib/link/state.ts'
import type { Outline } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { Icon } from '../ui/icon.tsx'
import { TurnView } from './turn.tsx'
import { callsOf, doneIn, type ShownTurn } from './turns.ts'
import { useStick } from './use-stick.ts'
import { useTurnWindow } from './use-turn-window.ts'

/** The turn of the settled request that the address names, if it is in this chat. */
function linkedTurn(turns: readonly ShownTurn[], outline: Outline | undefined): number | undefined {
  const id = location.hash.slice(1)
  const ask = id ? outline?.decided.find((one) => one.id === id) : undefined
  if (!ask) return undefined
  const { callId = id } = ask // the call of a budget request has its id
  const messageId = outline?.turns.find(({ runId }) => runId === ask.runId)?.messageId
  const index = turns.findIndex(
    ({ user, parts }) =>
      (user && user.id === messageId) ||
      parts.some((part) => callsOf(part).some((call) => call.id === callId)),
  )
  return index < 0 ? undefined : index
}

/** The turns of a chat. Of a long one only a part is in the page; more comes as it is scrolled to. */
export function Messages(props: { threadId: string; view: ThreadView; turns: ShownTurn[] }) {
  const { threadId, view, turns } = props
  const scroller = useRef<HTMLDivElement>(null)
  const part = useTurnWindow(turns.length, scroller)
  const { away, toEnd } = useStick(scroller, part.end === turns.length)
  const { said } = view
  const { latest } = part
  useEffect(() => {
    if (said === 0) return
    latest() // who says something is to see it
    toEnd()
  }, [said, latest, toEnd])
  const linked = linkedTurn(turns, view.outline)
  const hidden = linked !== undefined && linked < part.start
  const { show } = part
  const led = useRef(false)
  useEffect(() => {
    if (!hidden || led.current) return
    led.current = true // once: then the reader goes where they like
    show(linked)
  }, [hidden, linked, show])
  const details = new Map(view.outline?.turns.map((turn) => [turn.messageId ?? '', turn]))
  const running = isRunning(view)
  const unsent = view.problem?.saying
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section className="scroller" ref={scroller} aria-label="Messages" tabIndex={0}>
      <div className="column">
        {part.start > 0 && (
          <p className="edge" ref={part.top}>
            {part.start} earlier {part.start === 1 ? 'turn' : 'turns'}.{' '}
            <button type="button" className="button plain" onClick={part.first}>
              Go to the first
            </button>
          </p>
        )}
        {turns.slice(part.start, part.end).map((turn, i) => (
          <TurnView
            key={turn.key}
            threadId={threadId}
            turn={turn}
            done={() => doneIn(turns.slice(part.start + i), view.outline)}
            view={view}
            detail={details.get(turn.user?.id ?? '')}
            unsent={unsent?.branchFrom && unsent.branchFrom === turn.user?.id ? unsent : undefined}
            last={part.start + i === turns.length - 1}
            running={running}
          />
        ))}
        {part.end < turns.length && <p className="edge" ref={part.bottom} />}
      </div>
      {(away || part.end < turns.length) && (
        <div className="to-end">
          <button
            type="button"
            className="icon-button"
            aria-label="Go to the latest message"
            onClick={() => {
              latest()
              toEnd()
            }}
          >
            <Icon name="down" />
          </button>
        </div>
      )}
    </section>
  )
}
