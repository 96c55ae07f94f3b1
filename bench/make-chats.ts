import { parseArgs } from 'node:util'
import type { NewEntry } from '../src/core/store.ts'
import { systemClock } from '../src/lib/clock.ts'
import { fileStore } from '../src/stores/file/store.ts'

/** Fills a directory with chats: `npx tsx bench/make-chats.ts --directory data --chats 100000`. */
const { values } = parseArgs({
  options: {
    directory: { type: 'string', default: 'data' },
    chats: { type: 'string', default: '1000' },
    entries: { type: 'string', default: '4' },
    owner: { type: 'string', default: 'local' },
    /** Leaves it to the system when the files reach the disk. */
    unsynced: { type: 'boolean', default: false },
  },
})
const { directory, owner } = values
const chats = Number(values.chats)
const more = Number(values.entries) - 1
const names = { tenant: 'default', owner, agent: 'default' }

const fs = values.unsynced ? { sync: async () => {} } : {}
const store = await fileStore({ directory, clock: systemClock, fs })
const started = performance.now()
for (let from = 0; from < chats; from += 1000) {
  const size = Math.min(1000, chats - from)
  await Promise.all(Array.from({ length: size }, (_, n) => make(`chat-${from + n}`, from + n)))
}
await store.close()
const seconds = (performance.now() - started) / 1000
console.log(`${chats} chats in ${seconds.toFixed(1)} s, in ${directory}`)

async function make(threadId: string, n: number) {
  const at = 1_700_000_000_000 + n * 1000
  const base = { v: 1, threadId, tx: `tx_${n}`, at, fence: 0, digest: '' } as const
  const actor = { type: 'user', id: owner } as const
  const row = { ...names, threadId, clientId: threadId, title: `Chat number ${n}`, createdAt: at }
  const state = { updatedAt: at, archived: false, status: 'idle', leg: null } as const
  const created: NewEntry = {
    ...{ ...base, id: `e_${n}`, kind: 'thread.created', actor, body: JSON.stringify(names) },
    marks: { thread: { ...row, ...state }, facts: { head: 'none' } },
  }
  const rest = Array.from({ length: more }, (_, m): NewEntry => {
    const body = JSON.stringify({ name: 'note', value: `Something said in chat ${n}. `.repeat(8) })
    return { ...base, id: `e_${n}_${m}`, kind: 'event', actor, body }
  })
  await store.append(threadId, [created, ...rest], {})
}
