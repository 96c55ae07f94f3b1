'use client'

import { Icon } from '../ui/icon.tsx'

export function Reasoning({ text, live }: { text: string; live: boolean }) {
  if (text.trim() === '') return null
  return (
    <details className="reasoning">
      <summary>
        <Icon name="thought" /> {live ? 'Thinking…' : 'Thoughts'}
        <Icon name="chevron" />
      </summary>
      <p>{text}</p>
    </details>
  )
}
