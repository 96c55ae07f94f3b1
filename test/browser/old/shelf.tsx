import { useCoAgent, useCoAgentStateRender } from '@copilotkit/react-core'

/** The state that the page and the librarian share. */
interface Library {
  books?: string[]
  looking?: string
}

export function Shelf() {
  const { state, setState, start, running, nodeName } = useCoAgent<Library>({
    name: 'librarian',
    initialState: { books: [] },
  })
  useCoAgentStateRender<Library>({
    name: 'librarian',
    render: ({ state }) => (state.looking ? <p className="decided">{state.looking}</p> : ''),
  })
  const books = state.books ?? []
  return (
    <aside className="threads" aria-label="Shelf">
      <h2>
        Shelf{' '}
        <button
          type="button"
          onClick={() => setState({ ...state, books: [...books, `Page ${books.length + 1}`] })}
        >
          Add a book
        </button>
      </h2>
      <ul>
        {books.map((book) => (
          <li key={book}>{book}</li>
        ))}
      </ul>
      <p>
        <button type="button" onClick={start}>
          Call the librarian
        </button>
      </p>
      <p>{running ? `In session, at ${nodeName || 'no node'}` : 'No session'}</p>
    </aside>
  )
}
