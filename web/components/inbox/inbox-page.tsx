'use client'

import { useEffect, useState } from 'react'
import { PageHeader } from '../shell/page-header.tsx'
import { History } from './history.tsx'
import { useInbox } from './inbox-context.tsx'
import { OpenList } from './open-list.tsx'

type Tab = 'open' | 'history'

/** Everything that the reader may decide, across chats, and what was decided. */
export function InboxPage() {
  const [tab, setTab] = useState<Tab>('open')
  const { open, live } = useInbox()
  const count = open?.length ?? 0
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ''}Inbox · Handrail`
  }, [count])
  return (
    <div className="inbox">
      <PageHeader title="Inbox">
        <p className="connection" data-phase={live ? 'live' : 'reconnecting'}>
          <span className="dot" aria-hidden="true" />
          {live ? 'live' : open ? 'reconnecting' : 'loading'}
        </p>
        <p className="switch">
          {(['open', 'history'] as const).map((one) => (
            <button
              key={one}
              type="button"
              className="button plain"
              aria-pressed={tab === one}
              onClick={() => setTab(one)}
            >
              {one === 'open' ? `Open${count > 0 ? ` (${count})` : ''}` : 'History'}
            </button>
          ))}
        </p>
      </PageHeader>
      <div className="scroller">
        <div className="column">{tab === 'open' ? <OpenList /> : <History />}</div>
      </div>
    </div>
  )
}
