import { sha256 } from '../lib/canonical.ts'
import { pauses } from '../lib/pause.ts'
import { type Actor, type Draft, textOfBody, writeDown } from './entries.ts'
import { titleAfter } from './fold.ts'
import { serializeBody } from './large-parts.ts'
import { marksOf } from './marks.ts'
import type { ThreadState } from './state.ts'
import type { Guard, NewEntry } from './store.ts'

export interface Writing {
  guard: Guard
  actor: Actor
  cause?: string
}

/** A transition, as it is first tried; what it has been given it keeps. */
export interface Step {
  given: readonly Draft[]
  drafts: readonly Draft[]
  writing: Writing
  tx: string
  at: number
  ids: readonly string[]
}

/** Serializes the bodies of a long transition before it is appended. Lets other requests run in between. */
export async function serialize(drafts: readonly Draft[]): Promise<void> {
  const pause = pauses()
  for (const draft of drafts) {
    writeDown(draft, textOfBody(draft, serializeBody))
    await pause()
  }
}

/** The entries of a step. The changes of the store's indexes follow from the state as it is now. */
export function entriesOf({ drafts, writing, tx, at, ids }: Step, state: ThreadState): NewEntry[] {
  let { title } = state
  return drafts.map((draft, n): NewEntry => {
    const before = title
    title = titleAfter(title, draft)
    const body = textOfBody(draft, serializeBody)
    const id = ids[n]!
    const entry: NewEntry = {
      v: 1,
      id,
      threadId: state.threadId,
      tx,
      at,
      fence: writing.guard.fence ?? 0,
      kind: draft.kind,
      actor: writing.actor,
      digest: sha256(body),
      body,
      marks: marksOf({ ...draft, at, id, actor: writing.actor }, state, before),
    }
    if (draft.runId !== undefined) entry.runId = draft.runId
    if (draft.legId !== undefined) entry.legId = draft.legId
    if (writing.cause !== undefined) entry.cause = writing.cause
    return entry
  })
}
