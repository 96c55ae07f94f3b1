import { describe, expect, test } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { type Draft, draft } from './entries.ts'
import { type Cursor, cursorAt, follow, parseCursor, type Step } from './follow.ts'
import { Thread } from './thread.ts'

const runId = 'run'
const actor = { type: 'agent', id: 'far' } as const

async function startedThread() {
  const store = memoryStore({ clock: systemClock })
  const thread = new Thread('t', {
    ...{ store, bus: localBus(), clock: systemClock, newId, crash: () => {} },
  })
  const name = { tenant: 't', owner: 'o', clientId: 'c' }
  const command = (...drafts: Draft[]) => thread.commit(drafts, { guard: {}, actor })
  await command(draft('thread.created', { ...name, agent: 'far' }))
  await command(draft('run.queued', { agent: 'far', why: 'start' }, { runId }))
  thread.tail.begin(1, runId, thread.state.seq)
  thread.tail.push({ kind: 'text', id: 'm1', text: 'half' })
  /** Another driver writes these entries; the journal does not name the message that was being written. */
  const takeOver = async (...drafts: Draft[]) => {
    const lease = await store.claim('t', 'other', 10_000)
    await thread.commit(drafts, { guard: { fence: lease!.fence }, actor })
  }
  return { thread, command, takeOver }
}

const error = { code: 'agent_failed', message: 'The server stopped 10 times.' } as const

/** Entries with which another driver ends the leg of a lost driver. */
const legEnds = {
  'a new leg': draft('run.queued', { agent: 'far', why: 'recover' }, { runId }),
  'run.cancelled': draft('run.cancelled', {}, { runId }),
  'run.failed': draft('run.failed', { error }, { runId }),
}

const retracted = (steps: Step[]) =>
  steps.flatMap((step) => (step.type === 'retract' ? step.ids : []))

/** Reads until there is nothing more. */
async function readAll(thread: Thread, from: Cursor) {
  const leave = new AbortController()
  const steps: Step[] = []
  for await (const step of follow(thread, from, leave.signal)) {
    steps.push(step)
    if (step.type === 'idle') leave.abort()
  }
  return steps
}

describe.each(Object.entries(legEnds))('after a lost remote leg that ends in %s', (_, end) => {
  test('an open message is retracted before the end for a connected reader', async () => {
    const { thread, takeOver } = await startedThread()
    const last = thread.state.seq + 1
    const leave = new AbortController()
    const steps: Step[] = []
    for await (const step of follow(thread, cursorAt(0), leave.signal)) {
      steps.push(step)
      if (step.type === 'pieces') void takeOver(end)
      if (step.type === 'entry' && step.entry.seq === last) leave.abort()
    }
    expect(retracted(steps)).toEqual(['m1'])
    expect(steps.slice(-2).map(({ type }) => type)).toEqual(['retract', 'entry'])
  })

  test('an open message is retracted once for a reader that comes back', async () => {
    const { thread, takeOver } = await startedThread()
    const { seq } = thread.state
    await takeOver(end)
    thread.tail.begin(2, runId, thread.state.seq)
    const back = parseCursor(`${seq}.1.1!t:m1:4@${runId}`)
    expect(retracted(await readAll(thread, back))).toEqual(['m1'])
    const later = parseCursor(`${seq}@${runId}`)
    expect(retracted(await readAll(thread, later))).toEqual([])
  })
})

test('a command that cancels a queued run retracts nothing of the run that is writing', async () => {
  const { thread, command } = await startedThread()
  const { seq } = thread.state
  await command(draft('run.cancelled', {}, { runId: 'queued' }))
  const back = parseCursor(`${seq}.1.1!t:m1:4@${runId}`)
  expect(retracted(await readAll(thread, back))).toEqual([])
})
