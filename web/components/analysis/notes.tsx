'use client'

import Link from 'next/link'

export const Gone = () => (
  <div className="page-note">
    <h2>This analysis was deleted</h2>
    <p>
      <Link className="button" href="/analysis">
        Analyse an account
      </Link>
    </p>
  </div>
)

export const Elsewhere = ({ threadId }: { threadId: string }) => (
  <div className="page-note">
    <h2>This is a chat, and no account analysis</h2>
    <p>
      <Link className="button" href={`/t/${encodeURIComponent(threadId)}`}>
        Open the chat
      </Link>
    </p>
  </div>
)
