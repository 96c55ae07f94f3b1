import { writeSync } from 'node:fs'
import { saying } from '../../../test/contracts/find.contract.ts'
import { creation, entry } from '../../../test/contracts/store.contract.ts'
import { systemClock } from '../../lib/clock.ts'
import { fileStore } from './store.ts'

/**
 * Writes to a few threads for as long as it lives, and says what it was promised. Each thread is
 * created, grows by two entries at a time to 21, is erased and begins again, as another generation.
 */
const [directory = '', point = '', times = '1'] = process.argv.slice(2)
let left = Number(times)
const store = await fileStore({
  ...{ directory, clock: systemClock, syncEvery: 5, segmentBytes: 8_000 },
  crash(at) {
    if (at === point && --left === 0) process.kill(process.pid, 'SIGKILL')
  },
})

async function write(threadId: string) {
  const [first] = await store.read(threadId)
  let generation = first ? Number(first.body) : Date.now()
  const say = (seq: number) => writeSync(1, `${threadId} ${generation} ${seq}\n`)
  for (;;) {
    if (!(await store.thread(threadId)))
      await store.append(threadId, [{ ...creation(threadId), body: String(generation) }], {})
    for (let last = (await store.read(threadId)).length; last < 21; ) {
      const marks = { thread: { updatedAt: last } }
      const pair = [
        { ...saying(threadId, `word ${last}`), marks },
        entry(threadId, { marks: { facts: { last: `${last}` } } }),
      ]
      if (last % 5 === 0)
        await store.find({ tenant: 'acme', owner: 'ann', words: ['word'], limit: 5 })
      last = (await store.append(threadId, pair, {})).at(-1)!.seq
      say(last)
    }
    await store.erase(threadId, { expect: [{ fact: 'last', is: '19' }] })
    generation++
    say(0)
  }
}
await Promise.all(['a', 'b', 'c'].map(write))
