'use client'

import { useEffect, useRef } from 'react'
import type { Face, Station } from '../../lib/analysis.ts'
import { useAnnounce } from '../shell/announcer.tsx'

const worth: Partial<Record<Face, string>> = {
  working: 'has begun',
  done: 'done',
  failed: 'failed',
}

/** Says how far the steps of a run have come; what was so when it was first seen is no news. */
export function useStationNews(run: string | undefined, stations: readonly Station[]): void {
  const announce = useAnnounce()
  const before = useRef<{ run: string; faces: ReadonlyMap<string, Face> }>(undefined)
  const now = stations.map(({ title, face }) => `${title}\n${face}`).join('\t')
  useEffect(() => {
    if (run === undefined) return
    const had = before.current?.run === run ? before.current.faces : undefined
    const faces = new Map(now.split('\t').map((one) => one.split('\n') as [string, Face]))
    const news = [...faces].flatMap(([title, face]) =>
      had && had.get(title) !== face && worth[face] !== undefined
        ? [`${title}: ${worth[face]}.`]
        : [],
    )
    before.current = { run, faces }
    if (news.length > 0) announce(news.join(' '))
  }, [run, now, announce])
}
