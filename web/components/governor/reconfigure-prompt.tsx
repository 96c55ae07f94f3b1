'use client'

import { type FormEvent, useId, useState } from 'react'
import type { Decision } from '../../lib/shapes.ts'
import { Countdown } from '../asks/countdown.tsx'
import { Icon } from '../ui/icon.tsx'

export interface BudgetOption extends Decision {
  option: string
  label: string
  model?: string
}

/** What `reconfigureHITL` is called with. */
export interface ReconfigureArgs {
  title?: string
  actionLimit?: number
  actionsUsed?: number
  total?: number
  pending?: { agent: string; model: string; purpose: string }
  options?: BudgetOption[]
}

interface PromptProps {
  args: ReconfigureArgs
  /** Absent once it is answered, or while it is sent. */
  onContinue: ((decision: Decision) => void) | undefined
  onStop: (() => void) | undefined
  problem: string | undefined
  /** Until when it can be answered. */
  deadline: string | undefined
}

/** The budget is used up: what was done, what comes next, and how to go on. */
export function HITLReconfigurePrompt(props: PromptProps) {
  const { args, onContinue, onStop, problem, deadline } = props
  const { title, actionsUsed = 0, total = 0, pending, options = [] } = args
  const [own, setOwn] = useState('')
  const [wrong, setWrong] = useState<string>()
  const id = useId()
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const newLimit = Number(own)
    if (!/^\d+$/.test(own.trim()) || newLimit < 1 || newLimit > 1_000_000)
      return setWrong('Give a whole number from 1 to 1,000,000.')
    setWrong(undefined)
    onContinue?.({ newLimit, newStatus: true })
  }
  return (
    <section className="ask-card reconfigure" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`} tabIndex={-1}>
        {title ?? 'The budget of this chat is used up. Continue?'}
      </h2>
      <dl className="facts">
        <div>
          <dt>Done</dt>
          <dd>
            {actionsUsed} model {actionsUsed === 1 ? 'call' : 'calls'} since the budget was given,{' '}
            {total} in this chat.
          </dd>
        </div>
        {pending && (
          <div>
            <dt>Next</dt>
            <dd>
              One call of {pending.model} by {pending.agent}: {pending.purpose}
            </dd>
          </div>
        )}
      </dl>
      {(problem ?? wrong) !== undefined && (
        <p className="refused" role="alert">
          <Icon name="alert" /> {wrong ?? problem}
        </p>
      )}
      <p className="actions">
        {options
          .filter(({ option }) => option !== 'stop')
          .map(({ option, label }, i) => (
            <button
              key={option}
              type="button"
              className={i === 0 ? 'button primary' : 'button'}
              disabled={!onContinue}
              onClick={() => onContinue?.({ option })}
            >
              {label}
            </button>
          ))}
      </p>
      <form className="own-limit" onSubmit={submit} noValidate>
        <label htmlFor={id}>Another number of calls</label>
        <input
          id={id}
          inputMode="numeric"
          value={own}
          onChange={(event) => setOwn(event.target.value)}
        />
        <button type="submit" className="button" disabled={!onContinue || own === ''}>
          Continue
        </button>
      </form>
      <p className="actions">
        <button type="button" className="button" disabled={!onStop} onClick={onStop}>
          Stop here
        </button>
      </p>
      {deadline !== undefined && <Countdown kind="budget" deadline={deadline} atTimeout="stop" />}
    </section>
  )
}
