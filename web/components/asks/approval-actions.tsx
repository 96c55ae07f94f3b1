'use client'

import { type ReactNode, type RefObject, useEffect, useId, useRef, useState } from 'react'
import type { Decision, WholeApproval } from '../../lib/shapes.ts'
import { brief } from '../../lib/words.ts'
import { Confirm } from '../ui/confirm.tsx'
import { SchemaForm } from './schema-form.tsx'
import type { Deciding } from './use-decide.ts'
import { Words } from './words.tsx'

export type Mode = 'choose' | 'edit' | 'reject' | 'answer'
type Scope = 'once' | 'chat' | 'minutes'

interface Kept {
  words: Partial<Record<Mode, string>>
  texts?: string[]
}

const remembered: Record<Scope, Pick<Decision, 'remember'>> = {
  once: {},
  chat: { remember: 'chat' },
  minutes: { remember: { minutes: 10 } },
}

/** Approve, with changes or as it is, reject, answer in its place, or stop. */
export function ApprovalActions(props: {
  approval: WholeApproval
  deciding: Deciding
  mode: Mode
  onMode: (mode: Mode) => void
}) {
  const { approval, deciding, mode, onMode } = props
  const { card, input } = approval
  const { ready, decide, problem, field } = deciding
  const [scope, setScope] = useState<Scope>('once')
  /** An approval of a high risk that waits for its confirmation. */
  const [unsure, setUnsure] = useState<Decision>()
  /** What was written is there again for who comes back to it. */
  const kept = useRef<Kept>({ words: {} })
  const box = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const back = () => {
    box.current?.closest('.ask-card')?.querySelector('h2')?.focus() // what has the focus goes
    onMode('choose')
  }
  const approve = (changes: Pick<Decision, 'edited_input'> = {}) => {
    const decision = { approved: true, ...changes, ...remembered[scope] }
    if (card.risk?.level === 'high') setUnsure(decision)
    else void decide(decision, 'Approved.')
  }
  const confirmation = unsure && (
    <Confirm
      title={`${brief(card.title.replace(/\?$/, ''), 60)}?`}
      text={riskWords(unsure)}
      action="Approve it"
      keep="Not now"
      opener={mode === 'edit' ? box.current?.querySelector('[type="submit"]') : button.current}
      onConfirm={() => {
        setUnsure(undefined)
        void decide(unsure, 'Approved.')
      }}
      onCancel={() => setUnsure(undefined)}
    />
  )
  const allowFor = card.rule !== undefined && card.tool !== undefined && (
    <AllowFor tool={card.tool} rule={card.rule} scope={scope} onScope={setScope} />
  )
  if (mode === 'edit')
    return (
      <>
        <Opened title="Change the arguments" box={box} onBack={back}>
          {allowFor}
          <SchemaForm
            schema={card.schema}
            value={input}
            texts={kept.current.texts}
            onTexts={(texts) => {
              kept.current.texts = texts
            }}
            marks
            disabled={!ready}
            refused={{ field, words: problem }}
            onSubmit={({ value, changed }) =>
              approve(changed.length > 0 ? { edited_input: value } : {})
            }
            action={(filled) => (
              <>
                <button type="submit" className="button primary" disabled={!ready || !filled}>
                  {changesWords(filled?.changed.length)}
                </button>
                <button type="button" className="button" onClick={back}>
                  Back
                </button>
              </>
            )}
          />
        </Opened>
        {confirmation}
      </>
    )
  if (mode === 'reject' || mode === 'answer') {
    const reject = mode === 'reject'
    return (
      <Opened title={reject ? 'Reject' : 'Answer instead'} box={box} onBack={back}>
        <Words
          text={kept.current.words[mode]}
          onText={(text) => {
            kept.current.words[mode] = text
          }}
          label={reject ? 'Why? The model is told (may be left out)' : 'What the model is told'}
          action={reject ? 'Reject' : 'Send this answer instead'}
          needed={!reject}
          ready={ready}
          problem={problem}
          onBack={back}
          onWords={(words) =>
            reject
              ? decide({ approved: false, ...(words && { reason: words }) }, 'Rejected.')
              : decide({ answer: words }, 'Answered.')
          }
        />
      </Opened>
    )
  }
  return (
    <>
      {allowFor}
      {problem !== undefined && (
        <p className="refused" role="alert">
          {problem}
        </p>
      )}
      <p className="actions">
        <button
          type="button"
          ref={button}
          className="button primary approve"
          disabled={!ready}
          onClick={() => approve()}
        >
          {brief(card.title.replace(/\?$/, ''), 60)}
        </button>
        <button
          type="button"
          className="button reject"
          disabled={!ready}
          title={`Do not: ${card.title}`}
          onClick={() => onMode('reject')}
        >
          Reject
        </button>
        {(card.tool !== undefined || card.editable) && input !== null && (
          <button
            type="button"
            className="button edit"
            disabled={!ready}
            onClick={() => onMode('edit')}
          >
            Change and approve
          </button>
        )}
        <button
          type="button"
          className="button plain"
          disabled={!ready}
          onClick={() => onMode('answer')}
        >
          Answer instead
        </button>
        <button
          type="button"
          className="button plain"
          disabled={!ready}
          onClick={() => decide({ stop: true }, 'Stopped.')}
        >
          Stop here
        </button>
      </p>
      {confirmation}
    </>
  )
}

function riskWords({ edited_input, remember }: Decision): string {
  const changed = edited_input === undefined ? '' : ' You changed its arguments.'
  const further = remember === undefined ? '' : ' Further calls would not be asked about.'
  return `This is marked as a high risk.${changed}${further}`
}

function changesWords(count = 0): string {
  if (count === 0) return 'Approve as it is'
  return `Approve with ${count === 1 ? '1 change' : `${count} changes`}`
}

/** A part of the card that was asked for: it takes the focus, on nothing that decides. */
function Opened(props: {
  title: string
  box: RefObject<HTMLDivElement | null>
  onBack: () => void
  children: ReactNode
}) {
  const { title, box, onBack, children } = props
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a way back for all that is in it, beside the button
    <div ref={box} className="opened" onKeyDown={(event) => event.key === 'Escape' && onBack()}>
      <h3 ref={heading} tabIndex={-1}>
        {title}
      </h3>
      {children}
    </div>
  )
}

function AllowFor(props: {
  tool: string
  rule: string
  scope: Scope
  onScope: (scope: Scope) => void
}) {
  const { tool, rule, scope, onScope } = props
  const id = useId()
  const time = scope === 'chat' ? 'in this chat' : 'in this chat for ten minutes'
  return (
    <div className="allow-for">
      <label htmlFor={id}>Allow for</label>
      <select id={id} value={scope} onChange={(event) => onScope(event.target.value as Scope)}>
        <option value="once">once</option>
        <option value="chat">this chat</option>
        <option value="minutes">ten minutes</option>
      </select>
      {scope !== 'once' && (
        <p className="note">
          Every call of <code>{tool}</code> that the rule “{rule}” asks about, whatever its
          arguments, is then made {time} without asking. It can be taken back.
        </p>
      )}
    </div>
  )
}
