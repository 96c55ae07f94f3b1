'use client'

import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useState,
  useSyncExternalStore,
} from 'react'
import { Inbox, type InboxState } from '../../lib/inbox.ts'

const InboxContext = createContext<Inbox | undefined>(undefined)

/** One stream of decisions for everything that shows them. */
export function InboxProvider({ children }: { children: ReactNode }) {
  const [inbox, setInbox] = useState<Inbox>()
  useEffect(() => {
    const opened = new Inbox()
    setInbox(opened)
    return opened.follow()
  }, [])
  return <InboxContext.Provider value={inbox}>{children}</InboxContext.Provider>
}

const none: InboxState = { open: undefined, settled: new Map(), live: false }
const never = () => () => {}

export function useInbox(): InboxState {
  const inbox = useContext(InboxContext)
  return useSyncExternalStore(inbox?.subscribe ?? never, inbox?.get ?? (() => none), () => none)
}
