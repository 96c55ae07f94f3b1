'use client'

import { type FormEvent, useState } from 'react'
import type { ApiError } from '../../lib/api.ts'
import { readKey, writeKey } from '../../lib/key.ts'
import { wordsFor } from '../../lib/words.ts'

/** Before the runtime is found: it is being looked for, it is away, or it wants to know who asks. */
export function Waiting({ error, again }: { error: ApiError | undefined; again: () => void }) {
  if (error?.status === 401) return <SignIn again={again} />
  return (
    <main className="page-note">
      {error ? (
        <>
          <h1>The server cannot be reached</h1>
          <p role="alert">{wordsFor(error)}</p>
          <p>
            <button type="button" className="button" onClick={again}>
              Try now
            </button>
          </p>
        </>
      ) : (
        <p className="quiet" role="status">
          Looking for the server…
        </p>
      )}
    </main>
  )
}

function SignIn({ again }: { again: () => void }) {
  const [key, setKey] = useState('')
  const refused = readKey() !== null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    writeKey(key.trim())
    again()
  }
  return (
    <main className="page-note">
      <h1>Sign in</h1>
      <p>This server wants an API key. It is kept in this tab only.</p>
      {refused && <p role="alert">The server does not know this key. Try another.</p>}
      <form className="sign-in" onSubmit={submit}>
        <label htmlFor="key">API key</label>
        <input
          id="key"
          type="password"
          autoComplete="current-password"
          required
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        <button type="submit" className="button primary">
          Sign in
        </button>
      </form>
    </main>
  )
}
