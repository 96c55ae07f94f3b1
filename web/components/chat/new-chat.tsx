'use client'

import { useRouter } from 'next/navigation'
import { useEffect } from 'react'

/** Every chat has an address of its own from the start; the server hears of it with its first message. */
export function NewChat() {
  const router = useRouter()
  useEffect(() => router.replace(`/t/${crypto.randomUUID()}`), [router])
  return null
}
