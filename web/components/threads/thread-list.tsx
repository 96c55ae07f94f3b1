'use client'

import { useId } from 'react'
import { Icon } from '../ui/icon.tsx'
import { ThreadItem } from './thread-item.tsx'
import { useThreads } from './threads-context.tsx'

export function ThreadList() {
  const { rows, problem, more, search, archived, setSearch, setArchived, loadMore } = useThreads()
  const id = useId()
  return (
    <>
      <div className="search">
        <Icon name="search" />
        <label className="visually-hidden" htmlFor={id}>
          Search chats
        </label>
        <input
          id={id}
          type="search"
          placeholder="Search chats"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
      </div>
      <nav className="thread-list" aria-label={archived ? 'Archived chats' : 'Recent chats'}>
        {rows === undefined && problem === undefined && <Skeleton />}
        {problem !== undefined && (
          <p className="quiet" role="status">
            {problem}
          </p>
        )}
        {rows?.length === 0 && !more && <p className="quiet">{emptyWords(search, archived)}</p>}
        {rows !== undefined && rows.length > 0 && (
          <ul>
            {rows.map((row) => (
              <ThreadItem key={row.id} row={row} />
            ))}
          </ul>
        )}
        {more && (
          <button type="button" className="button plain" onClick={loadMore}>
            Show more
          </button>
        )}
      </nav>
      <button
        type="button"
        className="button plain archive-switch"
        aria-pressed={archived}
        onClick={() => setArchived(!archived)}
      >
        <Icon name="archive" /> {archived ? 'Back to recent chats' : 'Archive'}
      </button>
    </>
  )
}

function emptyWords(search: string, archived: boolean): string {
  if (search !== '') return `No chat is called “${search}”.`
  return archived ? 'Nothing is archived.' : 'Your chats will be listed here.'
}

function Skeleton() {
  return (
    <div className="skeleton" aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  )
}
