import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { unifiedDiff } from './diff.ts'

const diff = (before: string, after: string) => unifiedDiff(before, after).text
const text = (lines: number) => Array.from({ length: lines }, (_, i) => `line ${i}\n`).join('')

test('shows what changes, and the lines around it', () => {
  const before = text(12)
  const after = before.replace('line 5', 'line five')
  expect(diff(before, after)).toBe(
    '@@ -3,7 +3,7 @@\n line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8',
  )
  expect(diff('', 'a\nb')).toBe('@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file')
  expect(diff('a\n', 'a')).toBe('@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file')
  expect(diff('same', 'same')).toBe('')
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
        writeFileSync(join(place, 'p'), `--- a/f\n+++ b/f\n${diff(before, after)}\n`)
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
  expect(diff(big('a'), big('b')).split('\n')).toHaveLength(40_001)
})

test.each([
  ['a new text of 480,000 empty lines', '', '\n'.repeat(480_000), 960_020],
  [
    'two texts of 200,000 lines',
    'a\n'.repeat(200_000),
    'b\n'.repeat(199_999).concat('b'),
    1_200_053,
  ],
])(
  'of the diff of %s, only as much as is wanted is made, and the rest is counted',
  (_, before, after, length) => {
    const { text, ...rest } = unifiedDiff(before, after, 20_000)
    expect(text.length).toBeLessThan(20_010)
    expect(rest).toEqual({ length })
  },
)

test('the beginning of a diff is that of the whole diff, and its length is counted', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', '', 'é'), { maxLength: 20 })
  fc.assert(
    fc.property(lines, lines, fc.boolean(), fc.nat(60), (before, after, isEnded, maxLength) => {
      const texts = [before.join('\n'), after.join('\n') + (isEnded ? '\n' : '')] as const
      const whole = diff(...texts)
      const { text, length } = unifiedDiff(...texts, maxLength)
      expect(whole.startsWith(text)).toBe(true)
      expect(length).toBe(whole.length)
      expect(text.length).toBeGreaterThanOrEqual(Math.min(maxLength, length))
    }),
  )
})

test('a change in a long text is shown with the lines around it', () => {
  const before = text(100_000)
  const after = before.replace('line 50000\n', 'other\n')
  const around = (n: number) => ` line ${n}`
  expect(diff(before, after).split('\n')).toEqual([
    '@@ -49998,7 +49998,7 @@',
    ...[49_997, 49_998, 49_999].map(around),
    '-line 50000',
    '+other',
    ...[50_001, 50_002, 50_003].map(around),
  ])
})
