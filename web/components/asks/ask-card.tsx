'use client'

import { useEffect, useId, useState } from 'react'
import type { WholeApproval } from '../../lib/shapes.ts'
import { Reconfigure } from '../governor/reconfigure.tsx'
import type { ReconfigureArgs } from '../governor/reconfigure-prompt.tsx'
import { Icon } from '../ui/icon.tsx'
import { ApprovalActions, type Mode } from './approval-actions.tsx'
import { Countdown } from './countdown.tsx'
import { DoubtActions } from './doubt-actions.tsx'
import { Facts } from './facts.tsx'
import { InputActions } from './input-actions.tsx'
import { useApproval } from './use-approval.ts'
import { useDecide } from './use-decide.ts'

interface CardProps {
  id: string
  title: string
  /** Something has become of it: whoever shows it looks again. */
  onDecided: () => void
  /** Who may decide it, where that is said. */
  audience?: readonly string[] | undefined
}

/** One question to a person: what is asked, all there is to judge by, and the ways to answer. */
export function AskCard({ id, title, onDecided, audience }: CardProps) {
  const heading = useId()
  const { approval, problem, others } = useApproval(id)
  const ready = approval !== undefined
  useEffect(() => {
    if (!ready) return
    // Whoever came by a link to this question is brought to it, and onto nothing that decides.
    if (location.hash === `#${id}`) document.getElementById(heading)?.focus()
  }, [ready, id, heading])
  if (approval?.kind === 'budget')
    return (
      <Reconfigure
        askId={id}
        args={{ title, ...(approval.input as ReconfigureArgs) }}
        deadline={approval.deadline}
        onDecided={onDecided}
      />
    )
  return (
    <section
      className="ask-card"
      id={id}
      data-ask={id}
      aria-labelledby={heading}
      data-kind={approval?.kind}
    >
      <h2 id={heading} tabIndex={-1}>
        {approval?.card.title ?? title}
      </h2>
      {approval ? (
        <Open approval={approval} onDecided={onDecided} />
      ) : problem === undefined ? (
        <p className="quiet" role="status">
          Reading what is asked…
        </p>
      ) : (
        <p className="refused">
          <Icon name="alert" />{' '}
          {others && audience ? `This is for others to decide: ${audience.join(', ')}.` : problem}
        </p>
      )}
    </section>
  )
}

function Open({ approval, onDecided }: { approval: WholeApproval; onDecided: () => void }) {
  const [mode, setMode] = useState<Mode>('choose')
  const { id, kind, card } = approval
  const deciding = useDecide({ id, digest: card.digest }, onDecided)
  return (
    <>
      {kind === 'in_doubt' && (
        <p>
          It is not known whether this was done: it ran for too long, or the server stopped while it
          ran{card.began_at && ` (started at ${new Date(card.began_at).toLocaleTimeString()})`}.
          Check, and choose what happened.
        </p>
      )}
      <Facts approval={approval} />
      {kind === 'approval' && (
        <ApprovalActions approval={approval} deciding={deciding} mode={mode} onMode={setMode} />
      )}
      {kind === 'in_doubt' && <DoubtActions approval={approval} deciding={deciding} />}
      {kind === 'input' && <InputActions approval={approval} deciding={deciding} />}
      <Countdown kind={kind} deadline={approval.deadline} atTimeout={approval.at_timeout} />
    </>
  )
}
