import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { workshop } from '../../../test/support/file-workshop.ts'

const { directory, open } = workshop()
const script = fileURLToPath(new URL('./kill.child.ts', import.meta.url))

/** Runs the child until it dies, by its own hand or ours; the last thing promised per thread. */
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
  const promised = new Map<string, { generation: number; seq: number }>()
  for (const [, id, generation, seq] of output.matchAll(/^(\w) (\d+) (\d+)\n/gm))
    promised.set(id!, { generation: Number(generation), seq: Number(seq) })
  return promised
}

test.each([
  ['nowhere in particular', 1],
  ['log.before-commit', 40],
  ['log.after-commit', 40],
  ['journal.partial', 20],
  ['index.before-rename', 2],
  ['segment.before-drop', 3],
])(
  'has every acknowledged transition whole when killed at %s',
  async (point, times) => {
    const path = await directory()
    const acks = point.includes('.') ? Number.POSITIVE_INFINITY : 200
    const promised = await life(path, point, times, acks)
    const store = await open(path)
    const everywhere = { tenant: 'acme', owner: 'ann', words: ['word'], limit: 100 }
    const { rows: found } = await store.find(everywhere)
    for (const id of ['a', 'b', 'c']) {
      const { generation, seq } = promised.get(id) ?? { generation: 0, seq: 0 }
      const entries = await store.read(id)
      const said = entries.filter(({ kind }) => kind === 'message.added').map(({ seq }) => seq)
      const hits = found.filter(({ threadId }) => threadId === id).map(({ seq }) => seq)
      expect(hits.sort((a, b) => a - b)).toEqual(said)
      expect(entries.map((each) => each.seq)).toEqual(entries.map((_, n) => n + 1))
      expect((await store.thread(id)) !== undefined).toBe(entries.length > 0)
      // It was erased, or was about to be: only then may it be gone.
      if (entries.length === 0) expect([0, 21]).toContain(seq)
      else {
        // One entry that creates, then always two at once: an even number is half a transition.
        expect(entries.length % 2).toBe(1)
        expect(Number(entries[0]!.body)).toBeGreaterThanOrEqual(generation)
        if (Number(entries[0]!.body) === generation)
          expect(entries.length).toBeGreaterThanOrEqual(seq)
      }
    }
  },
  20_000,
)
