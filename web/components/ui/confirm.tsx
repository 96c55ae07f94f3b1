'use client'

import { useEffect, useId, useRef } from 'react'

/** Asks before something that cannot be undone. The button names what it does. */
export function Confirm(props: {
  title: string
  text: string
  action: string
  /** The button that changes nothing. */
  keep?: string
  onConfirm: () => void
  onCancel: () => void
}) {
  const { title, text, action, keep = 'Keep it', onConfirm, onCancel } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog ref={dialog} className="confirm" aria-labelledby={id} onClose={onCancel}>
      <h2 id={id}>{title}</h2>
      <p>{text}</p>
      <p className="actions">
        <button type="button" className="button" onClick={onCancel}>
          {keep}
        </button>
        <button type="button" className="button danger" onClick={onConfirm}>
          {action}
        </button>
      </p>
    </dialog>
  )
}
