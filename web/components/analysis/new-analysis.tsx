'use client'

import { useRouter } from 'next/navigation'
import { useEffect } from 'react'
import { analyst } from '../../lib/analysis.ts'
import { useRuntime } from '../../lib/runtime.tsx'
import { NoAnalysis } from './no-analysis.tsx'

/** Every analysis has an address of its own from the start. */
export function NewAnalysis() {
  const router = useRouter()
  const there = useRuntime().agents.some(({ name }) => name === analyst)
  useEffect(() => {
    if (there) router.replace(`/analysis/${crypto.randomUUID()}`)
  }, [there, router])
  return there ? null : <NoAnalysis />
}
