'use client'

import { useEffect, useState } from 'react'
import { useAnnounce } from '../shell/announcer.tsx'
import { Icon } from './icon.tsx'

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false)
  const announce = useAnnounce()
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 2_000)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      announce('Copied.')
    } catch {
      announce('The browser did not allow to copy.')
    }
  }
  return (
    <button type="button" className="icon-button" aria-label={label} title={label} onClick={copy}>
      <Icon name={copied ? 'check' : 'copy'} />
    </button>
  )
}
