import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { directoryName } from './directory-name.ts'

const ids = [
  ...[
    'ann',
    'Ann',
    'ANN',
    'a',
    'A',
    '',
    ' ',
    '.',
    '..',
    '../ann',
    '/',
    '/etc',
    '\\',
    'a/b',
    'a\\b',
  ],
  ...[
    'ann@example.com',
    'ann-example-com',
    'ann.',
    'ann ',
    'a\0b',
    'con',
    'CON',
    'nul',
    'com1',
    '~',
  ],
  ...[
    '\u00e9',
    'e\u0301',
    '\ufb01',
    'fi',
    '\u212a',
    'k',
    'K',
    '\ud800',
    '\udbff',
    '\ufffd',
    'İ',
    'ß',
  ],
  ...['x'.repeat(64), 'x'.repeat(65), 'x'.repeat(10_000), `${'x'.repeat(10_000)}y`, '日本', '😀'],
]

test('different ids get directory names that differ also when case and Unicode form are ignored', () => {
  const names = ids.map((id) => directoryName(id).normalize('NFKC').toLowerCase())
  expect(new Set(names).size).toBe(new Set(ids).size)
})

test('a directory name is short ASCII and one path segment', () => {
  for (const id of ids) expect(directoryName(id)).toMatch(/^[a-z0-9_~-]{1,105}$/)
  expect(directoryName('..')).not.toMatch(/^\.+$/)
})

test('a short lower-case id is its own directory name', () => {
  for (const id of ['ann', 'default', 'local', 'team_1-eu']) expect(directoryName(id)).toBe(id)
})

test('a directory name of an id is stable and cannot be chosen as another id', () => {
  const name = directoryName('Ann')
  expect(directoryName('Ann')).toBe(name)
  expect(directoryName(name)).not.toBe(name)
})

test('a directory name avoids names that are taken', () => {
  const taken = new Set(['acme'])
  const name = directoryName('acme', taken)
  expect(name).toMatch(/^acme~/)
  expect(directoryName('acme', new Set(['acme', name]))).toMatch(/^acme~(?!.*~)/)
  expect(directoryName('acme', new Set(['acme', name]))).not.toBe(name)
})

test('every directory name can be used on this file system', () => {
  const parent = mkdtempSync(join(tmpdir(), 'handrail-names-'))
  onTestFinished(() => rmSync(parent, { recursive: true }))
  for (const id of ids) writeFileSync(join(parent, directoryName(id)), '', { flag: 'wx' })
  expect(readdirSync(parent)).toHaveLength(ids.length)
})
