import { useThreads } from '@copilotkit/react-core/v2'

/** The threads of this user, each to be renamed and deleted. */
export function ThreadList() {
  const { threads, error, refetchThreads, renameThread, deleteThread } = useThreads({
    agentId: 'default',
  })
  return (
    <nav className="threads" aria-label="Threads">
      <h2>
        Threads{' '}
        <button type="button" onClick={refetchThreads}>
          Refresh
        </button>
      </h2>
      {error && <p role="alert">{error.message}</p>}
      <ul>
        {threads.map(({ id, name }) => (
          <li key={id} data-thread={id}>
            <span>{name ?? id}</span>
            <button type="button" onClick={() => void renameThread(id, `Renamed ${id}`)}>
              Rename
            </button>
            <button type="button" onClick={() => void deleteThread(id)}>
              Delete
            </button>
          </li>
        ))}
      </ul>
    </nav>
  )
}
