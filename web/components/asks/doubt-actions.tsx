'use client'

import { useState } from 'react'
import type { Outcome, WholeApproval } from '../../lib/shapes.ts'
import { brief } from '../../lib/words.ts'
import { Confirm } from '../ui/confirm.tsx'
import type { Deciding } from './use-decide.ts'
import { Words } from './words.tsx'

const words: Record<Outcome, string> = {
  happened: 'It happened',
  did_not: 'It did not: do it now',
  skip: 'Skip it',
  check: 'Let the tool look',
}

/** The server cannot know whether it was done: a person who can look says it. */
export function DoubtActions(props: { approval: WholeApproval; deciding: Deciding }) {
  const { card } = props.approval
  const { ready, decide, problem } = props.deciding
  const [telling, setTelling] = useState(false)
  /** The button that would run a high risk again, while that waits for its confirmation. */
  const [opener, setOpener] = useState<Element>()
  const outcomes = card.outcomes ?? ['happened', 'did_not', 'skip']
  if (telling)
    return (
      <Words
        label="What came of it? The model is told (may be left out)"
        action="It happened"
        needed={false}
        ready={ready}
        problem={problem}
        onBack={() => setTelling(false)}
        onWords={(result) => decide({ outcome: 'happened', ...(result && { result }) })}
      />
    )
  return (
    <>
      {problem !== undefined && (
        <p className="refused" role="alert">
          {problem}
        </p>
      )}
      <p className="actions">
        {(['check', 'happened', 'did_not', 'skip'] as const)
          .filter((one) => outcomes.includes(one))
          .map((outcome) => (
            <button
              key={outcome}
              type="button"
              className="button"
              disabled={!ready}
              onClick={({ currentTarget }) => {
                if (outcome === 'happened') setTelling(true)
                else if (outcome === 'did_not' && card.risk?.level === 'high')
                  setOpener(currentTarget)
                else void decide({ outcome }, 'Answered.')
              }}
            >
              {words[outcome]}
            </button>
          ))}
        <button
          type="button"
          className="button plain"
          disabled={!ready}
          onClick={() => decide({ stop: true }, 'Stopped.')}
        >
          Stop here
        </button>
      </p>
      {opener && (
        <Confirm
          title={`${brief(card.title.replace(/^Did this happen\? /, ''), 60)}: do it now?`}
          text="This is marked as a high risk. If it already happened, it will happen twice."
          action="Do it now"
          keep="Not now"
          opener={opener}
          onConfirm={() => {
            setOpener(undefined)
            void decide({ outcome: 'did_not' }, 'Answered.')
          }}
          onCancel={() => setOpener(undefined)}
        />
      )}
    </>
  )
}
