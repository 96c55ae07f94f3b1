'use client'

import { type FormEvent, type ReactNode, useId, useState } from 'react'
import type { BudgetChange } from '../../lib/api.ts'

/** Limits as a form holds them. */
export interface Limits {
  on: boolean
  calls: string
  tokens: string
  money: string
}

/** Whether to be asked, and after how much. */
export function LimitsForm(props: {
  limits: Limits
  problem: string | undefined
  note: ReactNode
  /** What nothing in a field means. */
  empty: string
  action: ReactNode
  onSet: (change: BudgetChange) => void
}) {
  const { problem, note, empty, action, onSet } = props
  const [limits, setLimits] = useState(props.limits)
  const [wrong, setWrong] = useState<string>()
  const { on } = limits
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const read = readLimits(limits)
    setWrong('problem' in read ? read.problem : undefined)
    if (!('problem' in read)) onSet(read)
  }
  const field = (name: 'calls' | 'tokens' | 'money', label: string) => (
    <Amount
      label={label}
      text={limits[name]}
      disabled={!on}
      onText={(text) => {
        setLimits({ ...limits, [name]: text })
        setWrong(undefined)
      }}
    />
  )
  return (
    <form className="meter-panel" onSubmit={submit} noValidate>
      <h2>Budget of this chat</h2>
      <label className="check">
        <input
          type="checkbox"
          checked={on}
          onChange={(event) => setLimits({ ...limits, on: event.target.checked })}
        />
        Ask me when the limit is reached
      </label>
      {field('calls', 'Model calls before I am asked')}
      {field('tokens', `Tokens (${empty})`)}
      {field('money', `Money (${empty})`)}
      {note}
      {(wrong ?? problem) !== undefined && (
        <p className="refused" role="alert">
          {wrong ?? problem}
        </p>
      )}
      <p className="actions">
        {action}
        <button type="submit" className="button primary">
          Set
        </button>
      </p>
    </form>
  )
}

function Amount(props: {
  label: string
  text: string
  disabled: boolean
  onText: (text: string) => void
}) {
  const { label, text, disabled, onText } = props
  const id = useId()
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        inputMode="decimal"
        disabled={disabled}
        value={text}
        onChange={(event) => onText(event.target.value)}
      />
    </>
  )
}

function readLimits({ on, calls, tokens, money }: Limits): BudgetChange | { problem: string } {
  if (!/^\d+$/.test(calls.trim()) || Number(calls) > 1_000_000)
    return { problem: 'The limit is a whole number up to 1,000,000.' }
  if (!/^\d*$/.test(tokens.trim())) return { problem: 'Tokens are a whole number, or nothing.' }
  if (!/^(\d+(\.\d+)?)?$/.test(money.trim()))
    return { problem: 'Money is a number such as 2.50, or nothing.' }
  const orNone = (text: string) => (text.trim() === '' ? null : Number(text))
  return {
    isHitlEnabled: on,
    actionLimit: Number(calls),
    tokenLimit: orNone(tokens),
    moneyLimit: orNone(money),
  }
}
