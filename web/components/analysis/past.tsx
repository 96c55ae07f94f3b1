'use client'

import Link from 'next/link'
import type { Past } from '../../lib/analysis.ts'
import { moment } from '../../lib/words.ts'

const speakers: Record<string, string> = { user: 'You', assistant: 'An agent' }

/** What was said of an account before, each with the way to where it was said. */
export function PastView({ past: { summary, mentions } }: { past: Past }) {
  return (
    <>
      <p>{summary}</p>
      {mentions.length > 0 && (
        <ul className="notes" aria-label="Mentions in earlier chats">
          {mentions.map(({ session_id, at, role, excerpt }) => (
            <li key={`${session_id} ${at} ${excerpt}`}>
              {speakers[role] ?? role}: “{excerpt}”{' '}
              <Link href={`/t/${encodeURIComponent(session_id)}`} prefetch={false}>
                {moment(at)}
              </Link>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
