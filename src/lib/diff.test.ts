import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { unifiedDiff } from './diff.ts'

const text = (lines: number) => Array.from({ length: lines }, (_, i) => `line ${i}\n`).join('')

test('shows what changes, and the lines around it', () => {
  const before = text(12)
  const after = before.replace('line 5', 'line five')
  expect(unifiedDiff(before, after)).toBe(
    '@@ -3,7 +3,7 @@\n line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8',
  )
  expect(unifiedDiff('', 'a\nb')).toBe('@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file')
  expect(unifiedDiff('a\n', 'a')).toBe('@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file')
  expect(unifiedDiff('same', 'same')).toBe('')
})

test('is taken by `git apply`, and leads to the new text', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', '', 'é'), { maxLength: 12 })
  const side = fc
    .tuple(lines, fc.boolean())
    .map(([list, end]) => list.join('\n') + (end ? '\n' : ''))
  const place = mkdtempSync(join(tmpdir(), 'handrail-diff-'))
  try {
    fc.assert(
      fc.property(side, side, (before, after) => {
        fc.pre(before !== after && before !== '' && after !== '')
        writeFileSync(join(place, 'f'), before)
        writeFileSync(join(place, 'p'), `--- a/f\n+++ b/f\n${unifiedDiff(before, after)}\n`)
        execFileSync('git', ['apply', '--unidiff-zero', 'p'], { cwd: place, stdio: 'ignore' })
        expect(readFileSync(join(place, 'f'), 'utf8')).toBe(after)
      }),
      { numRuns: 40 },
    )
  } finally {
    rmSync(place, { recursive: true })
  }
})

test('two large texts that have nothing in common are no work', () => {
  const big = (word: string) => Array.from({ length: 20_000 }, (_, i) => `${word}${i}\n`).join('')
  expect(unifiedDiff(big('a'), big('b')).split('\n')).toHaveLength(40_001)
})
