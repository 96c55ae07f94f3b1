'use client'

import { useCallback, useEffect, useState } from 'react'
import { getGrants, revokeGrant } from '../../lib/api.ts'
import type { Grant, Outline } from '../../lib/shapes.ts'
import { errorWords, moment } from '../../lib/words.ts'
import { useAnnounce } from '../shell/announcer.tsx'
import { Panel } from '../ui/panel.tsx'

/** What need not be asked about in this chat any more, and the way to take it back. */
export function Grants({ outline }: { outline: Outline }) {
  const { id, seq } = outline
  const [grants, setGrants] = useState<Grant[]>()
  const [given, setGiven] = useState(false) // once there were some the panel stays, to say that none is left
  const [problem, setProblem] = useState<string>()
  const announce = useAnnounce()
  const read = useCallback(async () => {
    try {
      const found = (await getGrants(id)).grants
      setGrants(found)
      if (found.length > 0) setGiven(true)
      setProblem(undefined)
    } catch (error) {
      setProblem(errorWords(error))
    }
  }, [id])
  // Read whatever the chat shows: what was given on another branch holds on this one too.
  useEffect(() => void read(), [seq, read])
  const revoke = async (grant: Grant) => {
    try {
      await revokeGrant(id, grant.id)
      announce(`${grant.tool} is asked about again.`)
    } catch (error) {
      setProblem(errorWords(error))
    }
    await read()
  }
  if (!given || !grants) return null
  const count = grants.length
  return (
    <Panel
      className="grants"
      title="Allowed without asking"
      label={count === 1 ? '1 permission' : `${count} permissions`}
    >
      {() => (
        <>
          <h2>Allowed without asking</h2>
          {problem !== undefined && <p className="refused">{problem}</p>}
          {count === 0 && <p className="quiet">Nothing is allowed without asking.</p>}
          <ul>
            {grants.map((grant) => (
              <li key={grant.id}>
                <span>
                  <code>{grant.tool}</code>
                  {grant.server !== undefined && ` of ${grant.server}`}
                  <span className="note">
                    {grant.inForce ? scopeOf(grant) : 'void: the tool or the policy has changed'} ·
                    given by {grant.givenBy} at {moment(grant.givenAt)}
                  </span>
                </span>
                <button
                  type="button"
                  className="button"
                  aria-label={`Take back ${grant.tool}`}
                  onClick={() => revoke(grant)}
                >
                  Take back
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </Panel>
  )
}

const scopeOf = ({ until }: Grant) =>
  until === undefined ? 'for this chat' : `until ${moment(until)}`
