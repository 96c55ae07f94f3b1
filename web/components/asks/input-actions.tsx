'use client'

import { fieldsOf } from '../../lib/schema.ts'
import type { WholeApproval } from '../../lib/shapes.ts'
import { SchemaForm } from './schema-form.tsx'
import type { Deciding } from './use-decide.ts'
import { Words } from './words.tsx'

/** Something that only a person knows: a form as the question wants it, or a few words. */
export function InputActions(props: { approval: WholeApproval; deciding: Deciding }) {
  const { schema } = props.approval.card
  const { ready, decide, problem, field } = props.deciding
  const decline = () => decide({ approved: false }, 'Declined.')
  if (fieldsOf(schema, undefined).length === 0)
    return (
      <Words
        label="Your answer"
        action="Send the answer"
        needed
        ready={ready}
        problem={problem}
        back="Do not answer"
        onBack={decline}
        onWords={(answer) => decide({ answer }, 'Answered.')}
      />
    )
  return (
    <SchemaForm
      schema={schema}
      value={undefined}
      marks={false}
      disabled={!ready}
      refused={{ field, words: problem }}
      onSubmit={({ value }) => decide({ answer: value }, 'Answered.')}
      action={() => (
        <>
          <button type="submit" className="button primary" disabled={!ready}>
            Send the answer
          </button>
          <button type="button" className="button" disabled={!ready} onClick={decline}>
            Do not answer
          </button>
          <button
            type="button"
            className="button plain"
            disabled={!ready}
            onClick={() => decide({ stop: true }, 'Stopped.')}
          >
            Stop here
          </button>
        </>
      )}
    />
  )
}
