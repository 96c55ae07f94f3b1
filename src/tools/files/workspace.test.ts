import * as fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { openWorkspace, settleSharedFiles } from './workspace.ts'

const owner = { tenant: 'default', user: 'local' }
let root: string

beforeEach(async () => {
  root = await fs.mkdtemp(join(tmpdir(), 'handrail-workspaces-'))
  onTestFinished(() => fs.rm(root, { recursive: true }))
})

const put = async (path: string, content = path) => {
  await fs.mkdir(join(root, path, '..'), { recursive: true })
  await fs.writeFile(join(root, path), content)
}
const own = (path: string) => fs.readFile(join(root, 'default/local', path), 'utf8')

test.each<[string, () => Promise<unknown>]>([
  ['a text', () => put('.layout.json', 'my layout')],
  ['a list of their own', () => put('.layout.json', '{"shared":[]}')],
  ['a folder', () => put('.layout.json/a.txt')],
  ['a link', () => fs.symlink('/etc/passwd', join(root, '.layout.json'))],
])(
  'a user’s own .layout.json in the shared workspace is moved like other files: %s',
  async (_, make) => {
    await make()
    await put('notes.txt')
    const { moved, left } = await settleSharedFiles(root, owner)
    expect(moved.sort()).toEqual([expect.stringMatching(/^\.layout\.json\./), 'notes.txt'])
    expect(left).toEqual([])
    expect(await own('notes.txt')).toBe('notes.txt')
    expect(await fs.readdir(join(root, 'default/local'))).toEqual(moved)
    expect(await settleSharedFiles(root, owner)).toEqual({ moved: [], left: [] })
  },
)

test('files with names that start like the list are moved too', async () => {
  await put('.layout.json.bak')
  expect(await settleSharedFiles(root, owner)).toEqual({ moved: ['.layout.json.bak'], left: [] })
})

test('files that an older version wrote after the first migration are moved, workspaces are not', async () => {
  await settleSharedFiles(root, owner)
  const acme = { root, owner: { tenant: 'acme', user: 'ann' } }
  await (await openWorkspace(acme, [], true)).handle.close()
  await put('late.txt')
  expect(await settleSharedFiles(root, owner)).toEqual({ moved: ['late.txt'], left: [] })
  expect((await fs.readdir(root)).sort()).toEqual(['.layout.json', 'acme', 'default'])
})

test('a name that cannot be moved is left and reported, and the others are moved', async () => {
  const odd = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0x61])]) // not UTF-8
  await fs.writeFile(odd, 'odd')
  await put('zoo.txt')
  const found = await settleSharedFiles(root, owner)
  expect(found).toEqual({ moved: ['zoo.txt'], left: ['\ufffda'] })
  expect(await fs.readFile(odd, 'utf8')).toBe('odd')
})

test('two servers that migrate at the same time move every file once and report none as left', async () => {
  const names = Array.from({ length: 50 }, (_, i) => `f${i}`)
  for (const name of names) await put(name)
  const all = await Promise.all([settleSharedFiles(root, owner), settleSharedFiles(root, owner)])
  expect(all.flatMap(({ left }) => left)).toEqual([])
  for (const name of names) expect(await own(name)).toBe(name)
})
