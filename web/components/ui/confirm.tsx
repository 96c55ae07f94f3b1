'use client'

import { useEffect, useId, useLayoutEffect, useRef, useState } from 'react'

/** Milliseconds before the action can be pressed: the second press of a double click was meant for what is below. */
const settling = 500

/** Asks before something that cannot be undone. The button names what it does. */
export function Confirm(props: {
  title: string
  text: string
  action: string
  /** The button that changes nothing. */
  keep?: string
  /** The button that opened the dialog. The dialog does not cover it. */
  opener?: Element | null | undefined
  onConfirm: () => void
  onCancel: () => void
}) {
  const { title, text, action, keep = 'Keep it', opener, onConfirm, onCancel } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const [ready, setReady] = useState(false)
  useLayoutEffect(() => {
    const shown = dialog.current
    if (!shown || shown.open) return
    shown.showModal()
    if (opener) keepClear(shown, opener)
  }, [opener])
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), settling)
    return () => clearTimeout(timer)
  }, [])
  return (
    <dialog
      ref={dialog}
      className="confirm"
      aria-labelledby={id}
      aria-describedby={`${id}-text`}
      onClose={onCancel}
    >
      <h2 id={id}>{title}</h2>
      <p id={`${id}-text`}>{text}</p>
      <p className="actions">
        <button type="button" className="button" onClick={onCancel}>
          {keep}
        </button>
        <button type="button" className="button danger" disabled={!ready} onClick={onConfirm}>
          {action}
        </button>
      </p>
    </dialog>
  )
}

const gap = 8

/** Moves the dialog above or below a button, so that a second press at the same place confirms nothing. */
function keepClear(dialog: HTMLDialogElement, button: Element): void {
  const { top, bottom } = button.getBoundingClientRect()
  const { height } = dialog.getBoundingClientRect()
  const isAbove = top - gap >= height || top > innerHeight - bottom
  dialog.style.marginBlock = '0'
  dialog.style.insetBlockStart = isAbove
    ? `${Math.max(0, top - gap - height)}px`
    : `${bottom + gap}px`
  dialog.style.insetBlockEnd = 'auto'
}
