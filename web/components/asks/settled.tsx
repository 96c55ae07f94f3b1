'use client'

import { useEffect, useRef } from 'react'
import type { Actor, Decided, Outcome } from '../../lib/shapes.ts'
import { moment } from '../../lib/words.ts'
import { Icon, type IconName } from '../ui/icon.tsx'

type Face = 'approved' | 'edited' | 'rejected' | 'answered' | 'expired' | 'cancelled'

const icons: Record<Face, IconName> = {
  approved: 'check',
  edited: 'edit',
  rejected: 'close',
  answered: 'check',
  expired: 'clock',
  cancelled: 'close',
}

/** How a question ended: who decided, where and when, and what that meant. */
export function Settled({ ask }: { ask: Decided }) {
  const face = faceOf(ask)
  const line = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // A link to a request leads here once it is settled.
    if (location.hash !== `#${ask.id}`) return
    line.current?.scrollIntoView({ block: 'center' })
    line.current?.focus({ preventScroll: true })
  }, [ask.id])
  return (
    <div
      className="settled"
      id={ask.id}
      ref={line}
      data-face={face}
      data-ask={ask.id}
      tabIndex={-1}
    >
      <p>
        <Icon name={icons[face]} />
        <span>
          {wordsOf(ask, face)}
          {ask.at !== null && <span className="quiet"> · {moment(ask.at)}</span>}
        </span>
      </p>
      {ask.reason && face !== 'expired' && <p className="reason">“{ask.reason}”</p>}
      {ask.edited && ask.callId === undefined && (
        <Arguments name="Arguments after the edit" input={ask.input} />
      )}
      {ask.edited && <Arguments name="Original arguments" input={ask.originalInput} />}
    </div>
  )
}

function Arguments({ name, input }: { name: string; input: unknown }) {
  return (
    <details>
      <summary>{name}</summary>
      <pre>{JSON.stringify(input, null, 2)}</pre>
    </details>
  )
}

function faceOf({ state, edited }: Decided): Face {
  if (state === 'approved') return edited ? 'edited' : 'approved'
  return state === 'timeout' ? 'expired' : state
}

const outcomes: Record<Outcome, string> = {
  happened: 'It happened, said',
  did_not: 'It had not happened and is done, said',
  skip: 'Skipped, said',
  check: 'Left to the tool to find out, said',
}

function wordsOf({ kind, by, outcome, remember }: Decided, face: Face): string {
  const who = nameOf(by)
  if (kind === 'in_doubt' && by?.type === 'system' && face === 'answered')
    return 'Settled: the tool reported the outcome of the call later'
  if (outcome) return `${outcomes[outcome]} ${who}`
  if (kind === 'budget' && face === 'answered') return `The budget was set by ${who}`
  if (kind === 'budget' && face === 'rejected') return `Stopped by ${who}`
  const more = remember ? ` (and what follows, for ${scopeWords(remember)})` : ''
  switch (face) {
    case 'approved':
      return by?.type === 'system'
        ? 'Nobody decided in time: approved, as the policy says'
        : `Approved by ${who}${more}`
    case 'edited':
      return `Approved with changes by ${who}${more}`
    case 'rejected':
      return kind === 'input' ? `Not answered: declined by ${who}` : `Rejected by ${who}`
    case 'answered':
      return kind === 'approval' ? `Answered in its place by ${who}` : `Answered by ${who}`
    case 'expired':
      return 'Expired: nobody decided in time'
    case 'cancelled':
      return 'Cancelled: the run was stopped or passed over before it was decided'
  }
}

const scopeWords = (remember: NonNullable<Decided['remember']>) =>
  remember === true ? 'this chat' : `${remember.minutes} minutes`

const places: Record<string, string> = {
  approvals: 'on the page or in the inbox',
  chats: 'over the chats API',
  agui: 'in another client',
  graphql: 'in another client',
}

function nameOf(by: Actor | null): string {
  if (!by) return 'nobody'
  const where = by.wire === undefined ? undefined : places[by.wire]
  return where === undefined ? by.id : `${by.id}, ${where}`
}
