'use client'

import type { ReactNode } from 'react'
import { Icon } from '../ui/icon.tsx'
import { useDrawer } from './shell.tsx'

/** The top of every page: on a phone the way to the list of chats, then what the page is. */
export function PageHeader({ title, children }: { title: string; children?: ReactNode }) {
  const openDrawer = useDrawer()
  return (
    <header className="chat-header">
      <button
        type="button"
        className="icon-button menu-button"
        aria-label="Show the list of chats"
        onClick={openDrawer}
      >
        <Icon name="menu" />
      </button>
      <h1>{title}</h1>
      {children}
    </header>
  )
}
