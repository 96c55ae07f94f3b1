'use client'

import Link from 'next/link'
import type { ThreadView } from '../../lib/use-link.ts'
import { Connection } from '../chat/connection.tsx'
import { Meter } from '../governor/meter.tsx'
import { PageHeader } from '../shell/page-header.tsx'

export function AnalysisHeader(props: { threadId: string; view: ThreadView; title: string }) {
  const { threadId, view, title } = props
  return (
    <PageHeader title={title}>
      <Meter threadId={threadId} view={view} />
      <Connection phase={view.phase} />
      {view.outline && (
        <Link className="button plain" href={`/t/${encodeURIComponent(threadId)}`} prefetch={false}>
          As a chat
        </Link>
      )}
    </PageHeader>
  )
}
