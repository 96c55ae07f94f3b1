'use client'

import { useEffect, useState } from 'react'
import { showBranch } from '../../lib/api.ts'
import type { Link } from '../../lib/link/link.ts'
import { type Content, textOf } from '../../lib/link/messages.ts'
import type { Saying } from '../../lib/link/state.ts'
import type { Turn } from '../../lib/shapes.ts'
import { errorWords } from '../../lib/words.ts'
import { useAnnounce } from '../shell/announcer.tsx'
import { CopyButton } from '../ui/copy-button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Branches } from './branches.tsx'
import { EditMessage } from './edit-message.tsx'
import { keepPlace } from './keep-place.ts'
import type { UserMessage } from './turns.ts'

/** What the person said; it can be said differently, and earlier versions can be looked at. */
export function UserTurn(props: {
  threadId: string
  message: UserMessage
  /** What came of it that stays done. */
  done: () => string[]
  detail: Turn | undefined
  /** A change of it that was not sent: it is open again. */
  unsent: Saying | undefined
  link: Link | undefined
  locked: boolean
}) {
  const { threadId, message, detail, unsent, link, locked } = props
  const [editing, setEditing] = useState<string>()
  useEffect(() => {
    if (unsent) setEditing(textOf(unsent.content))
  }, [unsent])
  const announce = useAnnounce()
  const text = textOf(message.content)
  const show = async (runId: string, place: string, turn: Element | null) => {
    try {
      await showBranch(threadId, runId)
      if (turn) keepPlace(turn, runId)
      announce(`Version ${place} is shown.`)
    } catch (problem) {
      announce(errorWords(problem))
    }
    link?.refresh()
  }
  if (editing !== undefined)
    return (
      <EditMessage
        text={editing}
        back={unsent !== undefined}
        done={props.done()}
        onCancel={() => {
          setEditing(undefined)
          if (unsent) link?.dismiss()
        }}
        onSend={(next) => {
          setEditing(undefined)
          link?.say({ content: edited(message.content, next), branchFrom: message.id })
        }}
      />
    )
  return (
    <article className="said" aria-label="You said">
      <div className="bubble">
        <Images content={message.content} />
        {text !== '' && <p>{text}</p>}
      </div>
      <div className="turn-tools">
        {detail?.status === 'queued' && <span className="badge">Waits in line</span>}
        {detail && detail.branches.length > 1 && (
          <Branches detail={detail} disabled={locked} onShow={show} />
        )}
        <CopyButton text={text} label="Copy your message" />
        <button
          type="button"
          className="icon-button"
          aria-label="Edit your message"
          title="Edit your message"
          disabled={locked}
          onClick={() => setEditing(text)}
        >
          <Icon name="edit" />
        </button>
      </div>
    </article>
  )
}

/** Pictures stay with the words that are changed. */
function edited(content: Content, text: string): Content {
  if (typeof content === 'string') return text
  const others = content.filter(({ type }) => type !== 'text')
  return [{ type: 'text', text }, ...others]
}

function Images({ content }: { content: Content }) {
  if (typeof content === 'string') return null
  return content.map((part, i) => {
    if (part.type !== 'image' || part.source.type !== 'data') return null
    const src = `data:${part.source.mimeType};base64,${part.source.value}`
    return <img key={i} src={src} alt={`Attached, number ${i}`} />
  })
}
