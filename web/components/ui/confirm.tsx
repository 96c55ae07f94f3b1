'use client'

import { useEffect, useId, useRef } from 'react'

/** Asks before something that cannot be undone. The button names what it does. */
export function Confirm(props: {
  title: string
  text: string
  action: string
  onConfirm: () => void
  onCancel: () => void
}) {
  const { title, text, action, onConfirm, onCancel } = props
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
          Keep it
        </button>
        <button type="button" className="button danger" onClick={onConfirm}>
          {action}
        </button>
      </p>
    </dialog>
  )
}
