'use client'

import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { textOf } from '../../lib/link/messages.ts'
import type { Saying } from '../../lib/link/state.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { Icon } from '../ui/icon.tsx'
import {
  type Attachment,
  attachmentsOf,
  contentOf,
  imageTypes,
  read,
  tooLarge,
} from './attachment.ts'
import { Blocked } from './blocked.tsx'
import { Notice } from './notice.tsx'
import { useDraft } from './use-draft.ts'

/** Where the next message is written. What was not taken comes back here. */
export function Composer(props: { threadId: string; view: ThreadView; running: boolean }) {
  const { threadId, view, running } = props
  const { link, problem, stopping, outline } = view
  const [text, setText] = useDraft(threadId)
  const [images, setImages] = useState<Attachment[]>([])
  const [warning, setWarning] = useState<string>()
  const input = useRef<HTMLTextAreaElement>(null)
  const back = useRef<Saying>(undefined) // what came back last: once is enough
  const picker = useRef<HTMLInputElement>(null)
  const waiting = outline?.status === 'waiting'
  const filled = text.trim() !== '' || images.length > 0
  // A change of an earlier message goes back to where it was made, if that is still to be seen.
  const from = problem?.saying?.branchFrom
  const changed = from !== undefined && view.messages.some(({ id }) => id === from)

  useEffect(() => {
    const saying = problem?.saying
    if (!saying || saying === back.current) return
    back.current = saying
    if (changed) return
    // What was written in the meantime stays, behind what was to be said before it.
    setText((now) => [textOf(saying.content), now].filter((text) => text !== '').join('\n\n'))
    setImages((now) => [...attachmentsOf(saying.content), ...now])
  }, [problem, changed, setText])
  useEffect(() => {
    // On a phone this would bring up the keyboard over the chat.
    if (matchMedia('(hover: hover)').matches) input.current?.focus({ preventScroll: true })
  }, [])

  const say = (whenBusy?: Saying['whenBusy']) => {
    if (!filled || !link || view.phase === 'nowhere') return
    link.say({ content: contentOf(text.trim(), images), ...(whenBusy && { whenBusy }) })
    setText('')
    setImages([])
    setWarning(undefined)
    input.current?.focus()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!waiting) say(running ? 'queue' : undefined)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    submit(event)
  }
  const attach = async (files: Iterable<File>) => {
    const chosen = [...files]
    const pictures = chosen.filter(({ type }) => imageTypes.includes(type))
    const small = pictures.filter((file) => !tooLarge(file))
    const large = pictures.length > small.length ? sizeWords : undefined
    setWarning(chosen.length > pictures.length ? typeWords : large)
    const more = await Promise.all(small.map(read))
    setImages((now) => [...now, ...more])
  }
  return (
    <form className="composer" onSubmit={submit}>
      <Notice
        problem={problem}
        changed={changed}
        warning={warning}
        onClose={() => link?.dismiss()}
      />
      {filled && (running || waiting) && (
        <Blocked
          view={view}
          waiting={waiting}
          onQueue={() => say('queue')}
          onInstead={() => say('cancel')}
        />
      )}
      <div className="composer-box">
        {images.length > 0 && (
          <ul className="attachments" aria-label="Attached images">
            {images.map((image) => (
              <li key={image.id}>
                <img src={`data:${image.type};base64,${image.data}`} alt={image.name} />
                <button
                  type="button"
                  className="icon-button"
                  aria-label={`Remove ${image.name}`}
                  onClick={() => setImages((now) => now.filter(({ id }) => id !== image.id))}
                >
                  <Icon name="close" />
                </button>
              </li>
            ))}
          </ul>
        )}
        <textarea
          ref={input}
          aria-label="Your message"
          dir="auto"
          placeholder="Write a message"
          rows={1}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            const files = [...event.clipboardData.files].filter(({ type }) =>
              imageTypes.includes(type),
            )
            if (files.length > 0) void attach(files)
          }}
        />
        <div className="composer-tools">
          <input
            ref={picker}
            type="file"
            className="visually-hidden"
            aria-label="Attach images"
            tabIndex={-1}
            accept={imageTypes.join(',')}
            multiple
            onChange={(event) => {
              void attach(event.target.files ?? [])
              event.target.value = ''
            }}
          />
          <button
            type="button"
            className="icon-button"
            aria-label="Attach an image"
            title="Attach an image"
            onClick={() => picker.current?.click()}
          >
            <Icon name="image" />
          </button>
          <span className="hint">Enter sends, Shift and Enter begins a line</span>
          {running ? (
            <button
              type="button"
              className="button stop"
              disabled={stopping}
              onClick={() => {
                void link?.stop()
                input.current?.focus() // this button goes away
              }}
            >
              <Icon name="stop" /> {stopping ? 'Stopping…' : 'Stop'}
            </button>
          ) : (
            <button
              type="submit"
              className="icon-button send"
              aria-label="Send"
              disabled={!filled || waiting || !link || view.phase === 'nowhere'}
            >
              <Icon name="send" />
            </button>
          )}
        </div>
      </div>
    </form>
  )
}

const sizeWords = 'An image may be as large as 2.5 MB. Choose a smaller one.'
const typeWords = 'Only images can be attached: PNG, JPEG, GIF or WebP.'
