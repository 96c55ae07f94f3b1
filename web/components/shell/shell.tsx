'use client'

import Link from 'next/link'
import { usePathname } from 'next/navigation'
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import { analyst } from '../../lib/analysis.ts'
import { readKey, refused, writeKey } from '../../lib/key.ts'
import { useRuntime } from '../../lib/runtime.tsx'
import { useInbox } from '../inbox/inbox-context.tsx'
import { ThreadList } from '../threads/thread-list.tsx'
import { Icon, Mark } from '../ui/icon.tsx'

const DrawerContext = createContext<() => void>(() => {})

/** Opens the list of chats where there is no room for it beside the chat. */
export const useDrawer = () => useContext(DrawerContext)

/** Chats on the left, what is looked at beside them. On a phone the list is a drawer. */
export function Shell({ children }: { children: ReactNode }) {
  const [open, setOpen] = useState(false)
  const drawer = useRef<HTMLDialogElement>(null)
  const place = usePathname()
  useEffect(() => setOpen(false), [place])
  useEffect(() => {
    if (open) drawer.current?.showModal()
    else drawer.current?.close()
  }, [open])
  return (
    <DrawerContext.Provider value={() => setOpen(true)}>
      <a className="skip" href="#main">
        Skip to the chat
      </a>
      <div className="shell">
        <aside className="side" aria-label="Chats">
          <Side />
        </aside>
        <dialog
          ref={drawer}
          className="drawer"
          aria-label="Chats"
          onClose={() => setOpen(false)}
          onClick={(event) => event.target === drawer.current && setOpen(false)}
          onKeyDown={(event) => event.key === 'Escape' && setOpen(false)}
        >
          {open && (
            <div className="side">
              <button
                type="button"
                className="icon-button close"
                aria-label="Close the list"
                onClick={() => setOpen(false)}
              >
                <Icon name="close" />
              </button>
              <Side />
            </div>
          )}
        </dialog>
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
    </DrawerContext.Provider>
  )
}

function InboxLink() {
  const { open } = useInbox()
  const count = open?.length ?? 0
  const current = usePathname() === '/inbox'
  return (
    <Link
      className="button plain inbox-link"
      href="/inbox"
      aria-current={current ? 'page' : undefined}
    >
      <Icon name="inbox" /> Inbox
      {count > 0 && (
        <span className="badge attention">
          {count}
          <span className="visually-hidden"> open</span>
        </span>
      )}
    </Link>
  )
}

function AnalysisLink() {
  const here = usePathname().startsWith('/analysis')
  if (!useRuntime().agents.some(({ name }) => name === analyst)) return null
  return (
    <Link
      className="button plain inbox-link"
      href="/analysis"
      aria-current={here ? 'page' : undefined}
    >
      <Icon name="steps" /> Account analysis
    </Link>
  )
}

function Side() {
  return (
    <>
      <p className="brand">
        <Mark /> Handrail
      </p>
      <Link className="button new-chat" href="/">
        <Icon name="plus" /> New chat
      </Link>
      <InboxLink />
      <AnalysisLink />
      <ThreadList />
      {readKey() !== null && (
        <button
          type="button"
          className="button plain sign-out"
          onClick={() => {
            writeKey(null)
            refused()
          }}
        >
          Sign out
        </button>
      )}
    </>
  )
}
