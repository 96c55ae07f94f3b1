'use client'

import { type ReactNode, useEffect, useId, useRef, useState } from 'react'

/** A button that shows something more below it; Escape and a click elsewhere close it. */
export function Panel(props: {
  label: ReactNode
  title: string
  className?: string
  children: (close: () => void) => ReactNode
}) {
  const { label, title, className = '', children } = props
  const [open, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const id = useId()
  useEffect(() => {
    if (!open) return
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false)
    }
    const leave = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return
      setOpen(false)
      button.current?.focus()
    }
    document.addEventListener('pointerdown', outside)
    document.addEventListener('keydown', leave)
    return () => {
      document.removeEventListener('pointerdown', outside)
      document.removeEventListener('keydown', leave)
    }
  }, [open])
  return (
    <div className={`panel ${className}`} ref={box}>
      <button
        ref={button}
        type="button"
        className="button plain panel-button"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && (
        <section id={id} className="panel-body" aria-label={title}>
          {children(() => setOpen(false))}
        </section>
      )}
    </div>
  )
}
