'use client'

import { createContext, type ReactNode, useCallback, useContext, useState } from 'react'

const AnnounceContext = createContext<(sentence: string) => void>(() => {})

/** Tells people who listen to the page. Whole sentences, never the pieces of an answer. */
export const useAnnounce = () => useContext(AnnounceContext)

export function Announcer({ children }: { children: ReactNode }) {
  const [said, setSaid] = useState({ sentence: '', turn: 0 })
  const announce = useCallback((sentence: string) => {
    setSaid(({ turn }) => ({ sentence, turn: turn + 1 }))
  }, [])
  // Two regions in turn: the same sentence twice is heard twice.
  return (
    <AnnounceContext.Provider value={announce}>
      {children}
      <div className="visually-hidden">
        {[0, 1].map((n) => (
          <div key={n} role="status">
            {said.turn % 2 === n ? said.sentence : ''}
          </div>
        ))}
      </div>
    </AnnounceContext.Provider>
  )
}
