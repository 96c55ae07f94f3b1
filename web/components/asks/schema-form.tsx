'use client'

import { type FormEvent, type ReactNode, useId, useMemo, useState } from 'react'
import { hiddenIn, lookalikesIn } from '../../lib/hidden.ts'
import { type Field, fieldsOf, put, readField, valueAt, written } from '../../lib/schema.ts'

export interface Filled {
  value: Record<string, unknown>
  changed: string[]
}

/** A form made from a JSON schema. What was changed is marked; what cannot be is said, and not sent. */
export function SchemaForm(props: {
  schema: unknown
  value: unknown
  /** A field that the server refused, and why. */
  refused: { field: string | undefined; words: string | undefined }
  disabled: boolean
  marks: boolean
  /** What was written before, field by field, and what is now. */
  texts?: string[] | undefined
  onTexts?: (texts: string[]) => void
  action: (filled: Filled | undefined) => ReactNode
  onSubmit: (filled: Filled) => void
}) {
  const { schema, value, refused, disabled, marks, action, onSubmit } = props
  const fields = useMemo(() => fieldsOf(schema, value), [schema, value])
  const before = useMemo(() => {
    return fields.map((field) => written(field, valueAt(value, field.path) ?? field.schema.default))
  }, [fields, value])
  const [texts, setTexts] = useState(props.texts ?? before)
  const [tried, setTried] = useState(false)
  const problems = fields.map((field, i) => {
    const read = readField(field, texts[i] ?? '')
    if ('problem' in read) return texts[i] !== '' || tried ? read.problem : undefined
    return refused.field === field.name ? refused.words : undefined
  })
  const filled = collect(fields, texts, before)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (filled) onSubmit(filled)
  }
  return (
    <form className="schema-form" onSubmit={submit} noValidate>
      {fields.map((field, i) => (
        <FormField
          key={field.name}
          field={field}
          text={texts[i] ?? ''}
          changed={marks && texts[i] !== before[i]}
          problem={problems[i]}
          disabled={disabled}
          onText={(text) => {
            const next = texts.map((one, at) => (at === i ? text : one))
            setTexts(next)
            props.onTexts?.(next)
          }}
        />
      ))}
      {refused.words !== undefined && !fields.some(({ name }) => name === refused.field) && (
        <p className="refused" role="alert">
          {refused.words}
        </p>
      )}
      <p className="actions">{action(filled)}</p>
    </form>
  )
}

function collect(fields: readonly Field[], texts: readonly string[], before: readonly string[]) {
  const value: Record<string, unknown> = {}
  for (const [i, field] of fields.entries()) {
    const read = readField(field, texts[i] ?? '')
    if ('problem' in read) return undefined
    if (read.value !== undefined) put(value, field.path, read.value)
  }
  const changed = fields.flatMap(({ name }, i) => (texts[i] === before[i] ? [] : [name]))
  return { value, changed }
}

interface FieldProps {
  field: Field
  text: string
  changed: boolean
  problem: string | undefined
  disabled: boolean
  onText: (text: string) => void
}

function FormField({ field, text, changed, problem, disabled, onText }: FieldProps) {
  const id = useId()
  const { path, schema, required, control } = field
  const shared = {
    ...{ id, disabled, value: text },
    'aria-invalid': problem !== undefined,
    'aria-describedby': `${id}-note`,
    onChange: (event: { target: { value: string } }) => onText(event.target.value),
  }
  const choices = control === 'yes-no' ? ['true', 'false'] : (schema.enum ?? []).map(String)
  return (
    <div className="form-field" data-changed={changed || undefined}>
      <label htmlFor={id}>
        {schema.title ?? path.at(-1)}
        {!required && <span className="quiet"> (may be left out)</span>}
        {changed && <span className="badge attention">changed</span>}
      </label>
      {control === 'choice' || control === 'yes-no' ? (
        <select {...shared}>
          {(!required || text === '') && <option value="">–</option>}
          {choices.map((one) => (
            <option key={one} value={one}>
              {control === 'choice' ? one : one === 'true' ? 'yes' : 'no'}
            </option>
          ))}
        </select>
      ) : control === 'number' ? (
        <input {...shared} inputMode="decimal" />
      ) : (
        <textarea
          {...shared}
          dir={control === 'json' ? 'ltr' : 'auto'}
          rows={Math.min(8, text.split('\n').length)}
          data-control={control}
        />
      )}
      {hiddenIn(text).length > 0 && (
        <p className="note" data-problem>
          This holds characters that cannot be seen or turn the text around:{' '}
          {hiddenIn(text).join(', ')}.
        </p>
      )}
      {lookalikesIn(text).length > 0 && (
        <p className="note" data-problem>
          This holds letters that look like those of another alphabet:{' '}
          {lookalikesIn(text).join(', ')}.
        </p>
      )}
      <p id={`${id}-note`} className="note" data-problem={problem !== undefined || undefined}>
        {problem ?? schema.description}
      </p>
    </div>
  )
}
