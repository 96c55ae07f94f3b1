import type { AskRow, Guard, NewEntry, Residue, ThreadRow } from '../../core/store.ts'
import { askColumns, threadColumns } from './rows.ts'
import { keyOf, pack } from './text.ts'

/** A transition as the function `append` reads it; nothing the caller changes later reaches it. */
export interface Transition {
  thread: string
  creates: boolean | null
  fence: number | undefined
  expected: Expected[] | undefined
  /** Texts of JSON: what is inside a text cannot trouble whoever reads the whole. */
  entries: { envelope: string; marks: string | undefined; body: string }[]
  columns: object | undefined
  facts: { fact: string; value: string }[] | undefined
  dropped_facts: string[] | undefined
  timers: { timer: string; at: number }[] | undefined
  dropped_timers: string[] | undefined
  asks: object[] | undefined
}

interface Expected {
  fact: string
  wanted: string | null
  negated: boolean
}

export function expectedOf({ expect = [] }: Guard): Expected[] | undefined {
  return filled(
    expect.map((one) => {
      const wanted = 'is' in one ? one.is : one.not
      const text = wanted === null ? null : pack(wanted)
      return { fact: keyOf(one.fact), wanted: text, negated: !('is' in one) }
    }),
  )
}

/** What the marks of all entries come to together: for each name the last one counts. */
export function transitionOf(
  threadId: string,
  given: readonly NewEntry[],
  guard: Guard,
): Transition {
  const facts = new Map<string, string | null>()
  const timers = new Map<string, number | null>()
  const asks = new Map<string, Partial<AskRow>>()
  let row: Partial<ThreadRow> | undefined
  for (const { marks } of given) {
    for (const [fact, value] of Object.entries(marks?.facts ?? {})) facts.set(keyOf(fact), value)
    for (const [key, at] of Object.entries(marks?.timers ?? {})) timers.set(keyOf(key), at)
    if (marks?.thread) row = { ...row, ...marks.thread }
    const { ask } = marks ?? {}
    if (ask) asks.set(ask.askId, { ...asks.get(ask.askId), ...ask, threadId })
  }
  const [first] = given
  return {
    thread: keyOf(threadId),
    creates: first?.kind === 'thread.created' ? isWhole(first.marks?.thread) : null,
    fence: guard.fence,
    expected: expectedOf(guard),
    entries: given.map(({ body, marks, ...envelope }) => ({
      envelope: JSON.stringify(envelope),
      marks: marks && JSON.stringify(marks),
      body: pack(body),
    })),
    columns: row && threadColumns({ ...row, threadId }),
    ...split('facts', facts, (fact, value) => ({ fact, value: pack(value) })),
    ...split('timers', timers, (timer, at) => ({ timer, at })),
    asks: filled(Array.from(asks.values(), askColumns)),
  } as Transition
}

function split<Value, Row>(
  name: string,
  marks: Map<string, Value | null>,
  rowOf: (key: string, value: Value) => Row,
) {
  const rows: Row[] = []
  const dropped: string[] = []
  for (const [key, value] of marks) {
    if (value === null) dropped.push(key)
    else rows.push(rowOf(key, value))
  }
  return { [name]: filled(rows), [`dropped_${name}`]: filled(dropped) }
}

const filled = <T>(list: T[]): T[] | undefined => (list.length > 0 ? list : undefined)

const whole = [
  ...(['tenant', 'owner', 'clientId', 'agent', 'title', 'createdAt', 'updatedAt'] as const),
  ...(['archived', 'status', 'leg'] as const),
]

/** The first entry of a thread brings all of its row. */
const isWhole = (row: Partial<ThreadRow> | undefined): boolean =>
  row !== undefined && whole.every((column) => row[column] !== undefined)

export interface Erasure {
  thread: string
  residue: Residue | undefined
  fence: number | undefined
  expected: Expected[] | undefined
}

export const erasureOf = (threadId: string, guard: Guard, residue?: Residue): Erasure => ({
  thread: keyOf(threadId),
  residue: residue && { id: keyOf(residue.id), text: pack(residue.text) },
  fence: guard.fence,
  expected: expectedOf(guard),
})
