'use client'

import Link from 'next/link'
import type { ThreadView } from '../../lib/use-link.ts'
import { Connection } from '../chat/connection.tsx'
import { Meter } from '../governor/meter.tsx'
import { useDrawer } from '../shell/shell.tsx'
import { Icon } from '../ui/icon.tsx'

export function AnalysisHeader(props: { threadId: string; view: ThreadView; title: string }) {
  const { threadId, view, title } = props
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
      <Meter threadId={threadId} view={view} />
      <Connection phase={view.phase} />
      {view.outline && (
        <Link className="button plain" href={`/t/${encodeURIComponent(threadId)}`} prefetch={false}>
          As a chat
        </Link>
      )}
    </header>
  )
}
