import { expect } from 'vitest'
import type { AuditKeys } from '../../src/core/audit.ts'
import { Verifier, verifyThread } from '../../src/core/audit-verify.ts'
import { type Known, read } from '../../src/core/entries.ts'
import type { Store } from '../../src/core/store.ts'

/** All entries of a thread, read from the store: what a checker believes, and nothing else. */
export async function journalOf(store: Store, threadId: string): Promise<Known[]> {
  const entries: Known[] = []
  for (;;) {
    const page = await store.read(threadId, { after: entries.at(-1)?.seq ?? 0 })
    if (page.length === 0) return entries
    entries.push(...page.map(read))
  }
}

/** I12: linked from the first entry on, and nothing changed since. */
export async function checkChain(store: Store, keys: AuditKeys, threadId: string): Promise<void> {
  const verifier = new Verifier(keys, threadId)
  const entries = async function* () {
    yield* await store.kept(threadId, { limit: 1e6 })
  }
  const { verdict, since, problems } = await verifyThread(entries(), verifier)
  expect({ verdict, since, problems }).toEqual({ verdict: 'ok', since: 1, problems: [] })
}

/** What must hold of every journal, whatever the story was. */
export function checkJournal(entries: readonly Known[]): void {
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1)) // I5
  const answered = new Set<string>()
  const executed = new Map<string, string>()
  const effects = new Map<string, string>()
  const ended = new Map<string, string>()
  const cancelling = new Set<string>()
  for (const entry of entries) {
    const { kind, runId = '' } = entry
    if (kind === 'run.cancelling') cancelling.add(runId)
    if (kind === 'effect.intended' || kind === 'ask.raised')
      expect(cancelling, `${kind} after the cancel (I7)`).not.toContain(runId)
    const end = ended.get(runId)
    if (end === 'run.failed' && kind === 'run.queued') ended.delete(runId)
    else if (end !== undefined) {
      const late = kind === 'effect.done' || kind === 'effect.failed'
      expect(late && effects.get(entry.body.effectId), `${kind} after ${end} (I7)`).toBe('unknown')
    }
    if (kind === 'ask.answered') {
      expect(answered, 'answered twice (I2)').not.toContain(entry.body.askId)
      answered.add(entry.body.askId)
    }
    if (kind === 'effect.intended') {
      const { askId, effectId } = entry.body
      effects.set(effectId, 'intended')
      if (askId !== undefined) {
        expect(answered, 'ran before it was approved (I3)').toContain(askId)
        expect(executed.get(askId) ?? effectId, 'two effects of one approval (I3)').toBe(effectId)
        executed.set(askId, effectId)
      }
    }
    if (kind === 'effect.done' || kind === 'effect.failed' || kind === 'effect.unknown')
      effects.set(entry.body.effectId, kind.slice(7))
    if (kind === 'run.completed' || kind === 'run.failed' || kind === 'run.cancelled')
      ended.set(runId, kind)
  }
}
