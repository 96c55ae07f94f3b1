import { writeSync } from 'node:fs'
import { creation, entry } from '../../../test/contracts/store.contract.ts'
import { systemClock } from '../../lib/clock.ts'
import { fileStore } from './store.ts'

/** Appends to a few threads for as long as it lives, and says which appends it was promised. */
const [directory = '', point = '', times = '1'] = process.argv.slice(2)
let left = Number(times)
const store = await fileStore({
  ...{ directory, clock: systemClock, syncEvery: 5, segmentBytes: 8_000 },
  crash(at) {
    if (at === point && --left === 0) process.kill(process.pid, 'SIGKILL')
  },
})

async function write(threadId: string) {
  if (!(await store.thread(threadId))) await store.append(threadId, [creation(threadId)], {})
  for (;;) {
    const placed = await store.append(threadId, [entry(threadId), entry(threadId)], {})
    writeSync(1, `${threadId} ${placed.at(-1)!.seq}\n`)
  }
}
await Promise.all(['a', 'b', 'c'].map(write))
