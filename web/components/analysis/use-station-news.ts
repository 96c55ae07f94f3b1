'use client'

import { useEffect, useRef } from 'react'
import type { Face, Station } from '../../lib/analysis.ts'
import { useAnnounce } from '../shell/announcer.tsx'

const worth: Partial<Record<Face, string>> = {
  working: 'has begun',
  done: 'done',
  failed: 'failed',
}

/** Says how far the steps have come; what was so when the page was opened is no news. */
export function useStationNews(stations: readonly Station[]): void {
  const announce = useAnnounce()
  const before = useRef<ReadonlyMap<string, Face>>(undefined)
  const now = stations.map(({ title, face }) => `${title}\n${face}`).join('\t')
  useEffect(() => {
    const faces = new Map(now.split('\t').map((one) => one.split('\n') as [string, Face]))
    const news = [...faces].flatMap(([title, face]) =>
      before.current && before.current.get(title) !== face && worth[face] !== undefined
        ? [`${title}: ${worth[face]}.`]
        : [],
    )
    before.current = faces
    if (news.length > 0) announce(news.join(' '))
  }, [now, announce])
}
