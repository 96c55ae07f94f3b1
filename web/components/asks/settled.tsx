'use client'

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
  return (
    <div className="settled" data-face={face} data-ask={ask.id} tabIndex={-1}>
      <p>
        <Icon name={icons[face]} />
        <span>
          {wordsOf(ask, face)}
          {ask.at !== null && <span className="quiet"> · {moment(ask.at)}</span>}
        </span>
      </p>
      {ask.reason && face !== 'expired' && <p className="reason">“{ask.reason}”</p>}
      {ask.input !== undefined && (
        <details>
          <summary>The arguments as they were changed</summary>
          <pre>{JSON.stringify(ask.input, null, 2)}</pre>
        </details>
      )}
    </div>
  )
}

function faceOf({ state, input }: Decided): Face {
  if (state === 'approved') return input === undefined ? 'approved' : 'edited'
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
