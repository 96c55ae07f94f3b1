'use client'

import { type FormEvent, useEffect, useRef } from 'react'

export function Rename(props: {
  name: string
  onDone: (name: string) => void
  onCancel: () => void
}) {
  const { name, onDone, onCancel } = props
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.select(), [])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const next = input.current?.value.trim() ?? ''
    if (next === '' || next === name) onCancel()
    else onDone(next)
  }
  return (
    <form className="rename" onSubmit={submit}>
      <input
        ref={input}
        aria-label={`New name of ${name}`}
        defaultValue={name}
        maxLength={200}
        onKeyDown={(event) => event.key === 'Escape' && onCancel()}
      />
      <button type="submit" className="button">
        Rename
      </button>
    </form>
  )
}
