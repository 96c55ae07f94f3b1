'use client'

import Link from 'next/link'
import { usePathname, useRouter } from 'next/navigation'
import { useState } from 'react'
import { analyst } from '../../lib/analysis.ts'
import { archiveThread, deleteThread, renameThread } from '../../lib/api.ts'
import type { ThreadRow } from '../../lib/shapes.ts'
import { ago, errorWords } from '../../lib/words.ts'
import { useInbox } from '../inbox/inbox-context.tsx'
import { useAnnounce } from '../shell/announcer.tsx'
import { Confirm } from '../ui/confirm.tsx'
import { Icon } from '../ui/icon.tsx'
import { Rename } from './rename.tsx'
import { useThreads } from './threads-context.tsx'

type Doing = 'choosing' | 'renaming' | 'deleting' | undefined

export function ThreadItem({ row }: { row: ThreadRow }) {
  const [doing, setDoing] = useState<Doing>()
  const [problem, setProblem] = useState<string>()
  const { refresh } = useThreads()
  const announce = useAnnounce()
  const router = useRouter()
  const [chat, analysis] = ['t', 'analysis'].map((one) => `/${one}/${encodeURIComponent(row.id)}`)
  const href = (row.agentId === analyst ? analysis : chat) ?? ''
  const place = usePathname()
  const current = place === chat || place === analysis
  const name = row.name || 'Untitled chat'
  const begin = (next: Doing) => {
    setProblem(undefined)
    setDoing(next)
  }
  /** Gives whether it was done. What was not says so in the row, and stays to be tried again. */
  const change = async (work: Promise<unknown>, done: string): Promise<boolean> => {
    try {
      await work
      begin(undefined)
      announce(done)
      return true
    } catch (error) {
      setProblem(`That did not work: ${errorWords(error)}`)
      return false
    } finally {
      refresh()
    }
  }
  const erase = async () => {
    begin(undefined)
    const done = await change(deleteThread(row.id), `Deleted “${name}”.`)
    if (done && current) router.push('/')
  }
  const failed = problem !== undefined && (
    <p className="refused" role="alert">
      {problem}
    </p>
  )
  if (doing === 'renaming')
    return (
      <li>
        <Rename
          name={name}
          onDone={(next) => change(renameThread(row.id, next), `Renamed to “${next}”.`)}
          onCancel={() => begin(undefined)}
        />
        {failed}
      </li>
    )
  return (
    <li className="thread" data-current={current || undefined}>
      <Link href={href} aria-current={current ? 'page' : undefined} prefetch={false}>
        <span className="name">{name}</span>
        <Standing row={row} />
      </Link>
      <button
        type="button"
        className="icon-button"
        aria-label={`Actions for ${name}`}
        aria-expanded={doing === 'choosing'}
        onClick={() => begin(doing === 'choosing' ? undefined : 'choosing')}
      >
        <Icon name="more" />
      </button>
      {doing === 'choosing' && (
        <div className="thread-actions">
          <button type="button" className="button plain" onClick={() => begin('renaming')}>
            <Icon name="edit" /> Rename
          </button>
          <button
            type="button"
            className="button plain"
            onClick={() =>
              change(
                archiveThread(row.id, !row.archived),
                row.archived ? `“${name}” is back.` : `Archived “${name}”.`,
              )
            }
          >
            <Icon name="archive" /> {row.archived ? 'Bring back' : 'Archive'}
          </button>
          <button type="button" className="button plain" onClick={() => begin('deleting')}>
            <Icon name="trash" /> Delete
          </button>
        </div>
      )}
      {doing === 'deleting' && (
        <Confirm
          title={`Delete “${name}”?`}
          text="All of its messages are removed, and what runs in it is stopped. This cannot be undone."
          action="Delete this chat"
          onConfirm={erase}
          onCancel={() => begin(undefined)}
        />
      )}
      {failed}
    </li>
  )
}

function Standing({ row: { id, status, updatedAt } }: { row: ThreadRow }) {
  const { open, live } = useInbox()
  // The inbox knows at once; the list is read every few seconds.
  const waits = live ? open?.some(({ chat_id }) => chat_id === id) : status === 'waiting'
  if (waits) return <span className="badge attention">Needs you</span>
  if (status === 'waiting') return <span className="badge">Waiting</span>
  if (status === 'running') return <span className="badge">Working…</span>
  return <span className="time">{ago(updatedAt, Date.now())}</span>
}
