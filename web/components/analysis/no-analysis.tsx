'use client'

import Link from 'next/link'
import { useEffect } from 'react'
import { analyst } from '../../lib/analysis.ts'

/** The server is set up without the agents of the analysis. */
export function NoAnalysis() {
  useEffect(() => {
    document.title = 'Account analysis · Handrail'
  }, [])
  return (
    <div className="page-note">
      <h1>This server has no account analysis</h1>
      <p className="quiet">
        Its configuration has no agent named <code>{analyst}</code>. Whoever runs the server can add
        it; chats work as ever.
      </p>
      <p>
        <Link className="button" href="/">
          Start a new chat
        </Link>
      </p>
    </div>
  )
}
