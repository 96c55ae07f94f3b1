'use client'

import { type FormEvent, useId, useState } from 'react'

/** Some words of the person who decides, and the button that sends them. */
export function Words(props: {
  label: string
  action: string
  needed: boolean
  ready: boolean
  problem: string | undefined
  onWords: (words: string) => void
  onBack: () => void
  back?: string
  /** What was written before, and what is now. */
  text?: string | undefined
  onText?: (text: string) => void
}) {
  const { label, action, needed, ready, problem, onWords, onBack, back = 'Back' } = props
  const [text, setText] = useState(props.text ?? '')
  const id = useId()
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onWords(text.trim())
  }
  return (
    <form className="schema-form" onSubmit={submit}>
      <div className="form-field">
        <label htmlFor={id}>{label}</label>
        <textarea
          id={id}
          rows={2}
          dir="auto"
          maxLength={10_000}
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            props.onText?.(event.target.value)
          }}
        />
      </div>
      {problem !== undefined && (
        <p className="refused" role="alert">
          {problem}
        </p>
      )}
      <p className="actions">
        <button
          type="submit"
          className="button primary"
          disabled={!ready || (needed && text.trim() === '')}
        >
          {action}
        </button>
        <button type="button" className="button" onClick={onBack}>
          {back}
        </button>
      </p>
    </form>
  )
}
