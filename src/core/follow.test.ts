import { expect, test } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { draft } from './entries.ts'
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
  const write = (...drafts: Parameters<Thread['commit']>[0]) =>
    thread.commit(drafts, { guard: {}, actor })
  await write(draft('thread.created', { ...name, agent: 'far' }))
  await write(draft('run.queued', { agent: 'far', why: 'start' }, { runId }))
  thread.tail.begin(1, runId, thread.state.seq)
  thread.tail.push({ kind: 'text', id: 'm1', text: 'half' })
  /** The driver is lost; the journal does not know that a message was being written. */
  const takeUp = () => write(draft('run.queued', { agent: 'far', why: 'recover' }, { runId }))
  return { thread, takeUp }
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

test('a message of a lost remote leg that the journal does not name is retracted for a connected reader', async () => {
  const { thread, takeUp } = await startedThread()
  const last = thread.state.seq + 1
  const leave = new AbortController()
  const steps: Step[] = []
  for await (const step of follow(thread, cursorAt(0), leave.signal)) {
    steps.push(step)
    if (step.type === 'pieces') void takeUp()
    if (step.type === 'retract' || (step.type === 'idle' && thread.state.seq === last))
      leave.abort()
  }
  expect(retracted(steps)).toEqual(['m1'])
})

test('a message of a lost remote leg is retracted for a reader that comes back, and only once', async () => {
  const { thread, takeUp } = await startedThread()
  const { seq } = thread.state
  await takeUp()
  thread.tail.begin(2, runId, thread.state.seq)
  const back = parseCursor(`${seq}.1.1!t:m1:4@${runId}`)
  expect(retracted(await readAll(thread, back))).toEqual(['m1'])
  const later = parseCursor(`${seq + 1}@${runId}`)
  expect(retracted(await readAll(thread, later))).toEqual([])
})
