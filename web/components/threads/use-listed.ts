'use client'

import { useEffect } from 'react'
import type { ThreadView } from '../../lib/use-link.ts'
import { useThreads } from './threads-context.tsx'

/** The list hears at once of what is done here. */
export function useListed({ outline }: ThreadView): void {
  const { refresh } = useThreads()
  const { status, name } = outline ?? {}
  useEffect(refresh, [status, name, refresh])
}
