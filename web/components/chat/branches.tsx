'use client'

import type { Turn } from '../../lib/shapes.ts'
import { Icon } from '../ui/icon.tsx'

/** Which version of a turn is shown, of how many, and ways to the others. */
export function Branches(props: {
  detail: Turn
  disabled: boolean
  /** `turn` is the element that goes when another comes. */
  onShow: (runId: string, place: string, turn: Element | null) => void
}) {
  const { detail, disabled, onShow } = props
  const { branches, runId } = detail
  const at = branches.indexOf(runId)
  const to = (next: number, { currentTarget }: { currentTarget: Element }) =>
    onShow(branches[next]!, `${next + 1} of ${branches.length}`, currentTarget.closest('.turn'))
  return (
    <fieldset className="branches" aria-label="Versions of this message">
      <button
        type="button"
        className="icon-button"
        aria-label="Show the version before"
        disabled={disabled || at <= 0}
        onClick={(event) => to(at - 1, event)}
      >
        <Icon name="left" />
      </button>
      <span>
        {at + 1} of {branches.length}
      </span>
      <button
        type="button"
        className="icon-button"
        aria-label="Show the next version"
        disabled={disabled || at >= branches.length - 1}
        onClick={(event) => to(at + 1, event)}
      >
        <Icon name="right" />
      </button>
    </fieldset>
  )
}
