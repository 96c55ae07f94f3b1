import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { workshop } from './testing.ts'

const { directory, open } = workshop()
const script = fileURLToPath(new URL('./kill.child.ts', import.meta.url))

/** Runs the child until it dies, by its own hand or ours; the last seq it was promised per thread. */
async function life(path: string, point: string, times: number, acks: number) {
  const args = ['--import', 'tsx', script, path, point, String(times)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
    if (output.split('\n').length > acks) child.kill('SIGKILL')
  })
  const [, signal] = await once(child, 'close')
  expect(signal).toBe('SIGKILL')
  const promised = new Map<string, number>()
  for (const [, id, seq] of output.matchAll(/^(\w) (\d+)\n/gm)) promised.set(id!, Number(seq))
  return promised
}

test.each([
  ['nowhere in particular', 1],
  ['log.before-write', 30],
  ['log.after-write', 30],
  ['log.after-sync', 30],
  ['journal.partial', 20],
  ['index.before-rename', 1],
  ['segment.before-drop', 2],
])(
  'has every acknowledged append, without gaps, when killed at %s',
  async (point, times) => {
    const path = await directory()
    const acks = point.includes('.') ? Number.POSITIVE_INFINITY : 200
    const promised = await life(path, point, times, acks)
    const store = await open(path)
    for (const id of ['a', 'b', 'c']) {
      const seqs = (await store.read(id, { limit: 1e6 })).map(({ seq }) => seq)
      expect(seqs).toEqual(Array.from(seqs, (_, n) => n + 1))
      expect(seqs.length).toBeGreaterThanOrEqual(promised.get(id) ?? 0)
      // One entry that creates, then always two at once: an even number would be half a transition.
      expect(seqs.length % 2).toBe(seqs.length === 0 ? 0 : 1)
    }
  },
  20_000,
)
