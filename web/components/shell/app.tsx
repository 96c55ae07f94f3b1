'use client'

import type { ReactNode } from 'react'
import { Runtime } from '../../lib/runtime.tsx'
import { InboxProvider } from '../inbox/inbox-context.tsx'
import { ThreadsProvider } from '../threads/threads-context.tsx'
import { Announcer } from './announcer.tsx'
import { Shell } from './shell.tsx'
import { Waiting } from './waiting.tsx'

/** Everything that outlives a change of the page. */
export function App({ children }: { children: ReactNode }) {
  return (
    <Announcer>
      <Runtime fallback={(error, again) => <Waiting error={error} again={again} />}>
        <InboxProvider>
          <ThreadsProvider>
            <Shell>{children}</Shell>
          </ThreadsProvider>
        </InboxProvider>
      </Runtime>
    </Announcer>
  )
}
