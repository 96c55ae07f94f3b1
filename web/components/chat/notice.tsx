'use client'

import type { Problem } from '../../lib/link/state.ts'
import { wordsFor } from '../../lib/words.ts'
import { Icon } from '../ui/icon.tsx'

/** Why something was not taken. */
export function Notice(props: {
  problem: Problem | undefined
  /** What was not taken is a change of an earlier message. */
  changed?: boolean
  warning: string | undefined
  onClose: () => void
}) {
  const { problem, changed, warning, onClose } = props
  if (!problem && !warning) return null
  return (
    <div className="notice">
      <Icon name="alert" />
      <p>
        {warning ?? (problem && wordsFor(problem.error))}
        {problem?.saying && !warning && (changed ? changeWords : messageWords)}
      </p>
      {problem && (
        <button
          type="button"
          className="icon-button"
          aria-label="Close this note"
          onClick={onClose}
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  )
}

const messageWords = ' Your message was not sent; it is below.'
const changeWords = ' Your change was not sent; it is still open, above.'
