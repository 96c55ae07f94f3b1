import { z } from 'zod'
import { RuntimeError } from '../core/errors.ts'
import type { Message } from '../core/messages.ts'
import { isLarger } from '../lib/size.ts'
import { tokenCounter } from './body.ts'

/** Messages of one list that are read. */
export const maxMessages = 5_000
/** Messages of an AG-UI list: clients send their whole history, and those that the thread has are not read. */
export const maxListed = 12_000
/** Messages of a request that the thread does not have yet: each becomes an entry, all in one transition. */
export const maxNewMessages = 500
/** Characters of their texts and calls together. */
export const maxNewCharacters = 2_000_000
/** Parts of one message: texts, images and calls. */
export const maxParts = 500
export const maxTools = 500
export const maxContextItems = 500
/** Answers to questions, and states of agents. */
export const maxAnswers = 200

/** A list with at most so many items. */
export const limitedList = <T extends z.ZodType>(item: T, max: number) =>
  z.array(item).max(max, `has more than ${max} items. Send fewer.`)

/** Throws `invalid_request` for a list with more than so many items. */
export function refuseLongList(
  list: readonly unknown[] | null | undefined,
  max: number,
  field: string,
): void {
  if (list && list.length > max) throw refusal(field, `has more than ${max} items. Send fewer.`)
}

/**
 * Throws `invalid_request` for more new messages, parts or text than a request may add to a thread, and `body_too_complex`
 * for arguments of calls that have more fields and items together than one body may have: models read them all at once.
 */
export function refuseManyNew(messages: readonly Message[], field: string): void {
  if (messages.length > maxNewMessages)
    throw refusal(
      field,
      `has ${messages.length} messages that the thread does not have, and ${maxNewMessages} is the limit. ` +
        'Leave out the oldest.',
    )
  let characters = 0
  const count = tokenCounter()
  for (const { id, parts } of messages) {
    if (parts.length > maxParts)
      throw refusal(field, `message ${id} has more than ${maxParts} parts. Send fewer.`)
    for (const part of parts) {
      if (part.type === 'call') {
        characters += part.input.length
        count(part.input, `${field}.${id}`)
      } else if (part.type !== 'media') characters += part.text.length
    }
  }
  if (characters > maxNewCharacters)
    throw refusal(field, `has more than ${maxNewCharacters} characters of new text. Send less.`)
}

/** The refusal of a list with more messages that the thread does not have than the server reads. */
export const tooManyToRead = (): RuntimeError =>
  refusal(
    'body.messages',
    `has more than ${maxMessages} messages that the thread does not have. Leave out the oldest.`,
  )

const refusal = (field: string, problem: string) =>
  new RuntimeError('invalid_request', `${field}: ${problem}`, { field })

/** The size of one value whose shape a client chooses: a state, forwarded properties, a tool's schema. */
export const valueLimit = { values: 25_000, characters: 1_000_000 }

const tooLarge =
  `is larger than ${valueLimit.values} values or ${valueLimit.characters} characters. ` +
  'Send less of it.'

/** Throws `invalid_request` for a value beyond `valueLimit`. */
export function refuseLargeValue(value: unknown, field: string): void {
  if (isLarger(value, valueLimit)) throw refusal(field, tooLarge)
}

/** Any JSON within `valueLimit`. */
export const limitedValue = z
  .unknown()
  .optional()
  .refine((value) => !isLarger(value, valueLimit), tooLarge)

/** Any JSON object within `valueLimit`. */
export const limitedRecord = z
  .record(z.string(), z.unknown())
  .refine((value) => !isLarger(value, valueLimit), tooLarge)
