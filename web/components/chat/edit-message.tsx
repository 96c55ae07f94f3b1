'use client'

import { type FormEvent, useEffect, useRef, useState } from 'react'

export function EditMessage(props: {
  text: string
  /** It was not sent and opens by itself: who writes elsewhere by now is not called away. */
  back: boolean
  /** What came of it and is not undone. */
  done: readonly string[]
  onSend: (text: string) => void
  onCancel: () => void
}) {
  const [text, setText] = useState(props.text)
  const input = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (!props.back || document.activeElement === document.body) input.current?.focus()
  }, [props.back])
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    if (text.trim() !== '') props.onSend(text.trim())
  }
  return (
    <form className="edit-message" onSubmit={submit}>
      <textarea
        ref={input}
        aria-label="Your message, to be changed"
        dir="auto"
        value={text}
        rows={Math.min(12, text.split('\n').length + 1)}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') props.onCancel()
          if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault()
            submit()
          }
        }}
      />
      {props.done.length > 0 && (
        <section className="already-done" aria-label="Already done">
          <p>Already done, and not undone by another version:</p>
          <ul>
            {props.done.map((title, i) => (
              <li key={i}>{title}</li>
            ))}
          </ul>
        </section>
      )}
      <p className="actions">
        <span className="quiet">
          The chat goes on from here; what came after is kept as a version.
        </span>
        <button type="button" className="button" onClick={props.onCancel}>
          Cancel
        </button>
        <button type="submit" className="button primary">
          Send
        </button>
      </p>
    </form>
  )
}
