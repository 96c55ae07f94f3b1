import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { toolUse } from '../../../test/support/tool-use.ts'
import { PreconditionChanged, readInput } from '../../core/tool.ts'
import { listFiles } from './list-files.ts'
import { readFile } from './read-file.ts'
import { writeFile } from './write-file.ts'

let place: string
let root: string
let own: string
let outside: string

beforeEach(async () => {
  place = await fs.mkdtemp(join(tmpdir(), 'handrail-files-'))
  root = join(place, 'root')
  own = join(root, 'default', 'local')
  outside = join(place, 'outside')
  await fs.mkdir(join(outside, 'folder'), { recursive: true })
  await fs.writeFile(join(outside, 'secret.txt'), 'secret')
})
afterEach(() => fs.rm(place, { recursive: true }))

const signal = new AbortController().signal
const use = toolUse({ signal, effectId: 'effect_1' })
const read = (path: string) => readFile({ root }).run({ path }, use)
const list = (path?: string) => listFiles({ root }).run({ path }, use)
const write = (path: string, content = 'hello') => writeFile({ root }).run({ path, content }, use)
const check = (path: string, content = 'hello') =>
  writeFile({ root }).check?.({ path, content }, 'effect_1', signal, use)
const preview = (path: string, content = 'hello') =>
  writeFile({ root }).preview?.({ path, content }, signal, use)

/** Everything that could be refused, and the promise that no error tells where the root is. */
async function refused(work: Promise<unknown> | undefined, sentence = /./) {
  const error = await Promise.resolve(work).then(
    (value) => expect.fail(`was not refused: ${JSON.stringify(value)}`),
    (reason: Error) => reason,
  )
  expect(error.message).toMatch(sentence)
  expect(error.message).toMatch(/^\S.* .*\.$/s)
  for (const told of [error.message, String(error.cause), error.stack?.split('\n    at ')[0]]) {
    expect(told).not.toContain(place)
    expect(told).not.toContain('/proc')
  }
}

const allRefused = (works: (Promise<unknown> | undefined)[], sentence?: RegExp) =>
  Promise.all(works.map((work) => refused(work, sentence)))

describe('in the workspace', () => {
  test('is empty before the first write, which makes it', async () => {
    expect(await list()).toBe('The folder is empty.')
    expect(existsSync(root)).toBe(false)
    expect(await write('notes.txt')).toBe('Wrote notes.txt (5 bytes).')
    expect(await write('a/b/ñandú 😀.txt', '')).toBe('Wrote a/b/ñandú 😀.txt (0 bytes).')
    expect(await list()).toBe('a/\nnotes.txt (5 bytes)')
    expect(await list('./a//b/')).toBe('ñandú 😀.txt (0 bytes)')
    expect(await read('./notes.txt')).toBe('hello')
  })

  test('a write replaces the whole file, keeps its mode and leaves nothing beside it', async () => {
    await write('run.sh', 'a longer first text')
    await fs.chmod(join(own, 'run.sh'), 0o750)
    await write('run.sh', 'short')
    expect(await read('run.sh')).toBe('short')
    expect((await fs.stat(join(own, 'run.sh'))).mode & 0o7777).toBe(0o750)
    expect(await fs.readdir(own)).toEqual(['run.sh'])
  })

  test('an aborted write writes nothing', async () => {
    const work = writeFile({ root }).run(
      { path: 'notes.txt', content: 'x' },
      { ...use, signal: AbortSignal.abort(new Error('cancelled')) },
    )
    await expect(work).rejects.toThrow('cancelled')
    expect(existsSync(root)).toBe(false)
  })

  test('reads text only, and not too much of it', async () => {
    await write('text.txt', '\uFEFFmark kept\r\n')
    expect(await read('text.txt')).toBe('\uFEFFmark kept\r\n')
    await fs.writeFile(join(own, 'binary'), Buffer.from([0x68, 0xff, 0xfe]))
    await fs.writeFile(join(own, 'nul'), 'a\0b')
    await fs.writeFile(join(own, 'large'), Buffer.alloc(1024 * 1024 + 1, 'a'))
    await refused(read('binary'), /binary is not a text file/)
    await refused(read('nul'), /nul is not a text file/)
    await refused(read('large'), /too large: 1048577 bytes, and the limit is 1048576/)
    await refused(read('missing'), /missing does not exist/)
    await refused(write('big', 'é'.repeat(600_000)), /over 1048576 bytes/)
    expect(existsSync(join(own, 'big'))).toBe(false)
  })

  test('a preview shows both sides and changes nothing', async () => {
    const created = { kind: 'diff', before: null, after: 'hello', precondition: 'absent' }
    expect(await preview('a/b.txt')).toEqual(created)
    expect(existsSync(root)).toBe(false)
    await write('a/b.txt', 'old')
    const precondition = expect.stringMatching(/^sha256:[0-9a-f]{64}$/)
    const changed = { kind: 'diff', before: 'old', after: 'hello', precondition }
    expect(await preview('a/b.txt')).toEqual(changed)
    await fs.writeFile(join(own, 'large'), Buffer.alloc(1024 * 1024 + 1, 'a'))
    const replaced = 'The file that is there is not text, or too large.\n\nhello'
    expect(await preview('large')).toMatchObject({ kind: 'text', text: replaced })
  })

  test.each([
    ['other content', 'old', () => fs.writeFile(join(own, 'a'), 'precious')],
    ['a new file', undefined, () => fs.writeFile(join(own, 'a'), 'precious')],
    ['a file that is gone', 'old', () => fs.rm(join(own, 'a'))],
    ['a large file that grew', 'x'.repeat(1024 * 1024), () => fs.appendFile(join(own, 'a'), 'xx')],
  ])('a write whose precondition does not hold changes nothing: %s', async (_, before, change) => {
    await write('other')
    if (before !== undefined) await fs.writeFile(join(own, 'a'), before)
    if (before?.startsWith('x')) await fs.appendFile(join(own, 'a'), 'x')
    const { precondition = '' } = (await preview('a'))!
    await change()
    const left = await fs.readFile(join(own, 'a'), 'utf8').catch(() => undefined)
    const tool = writeFile({ root })
    const again = tool.run({ path: 'a', content: 'new' }, { ...use, precondition })
    await expect(again).rejects.toThrow(PreconditionChanged)
    expect(await fs.readFile(join(own, 'a'), 'utf8').catch(() => undefined)).toBe(left)
    expect((await fs.readdir(own)).sort()).toEqual(left === undefined ? ['other'] : ['a', 'other'])
    const fresh = (await preview('a'))!.precondition!
    await tool.run({ path: 'a', content: 'new' }, { ...use, precondition: fresh })
    expect(await read('a')).toBe('new')
    expect((await fs.readdir(own)).sort()).toEqual(['a', 'other'])
  })

  test('of writes at the same time with one precondition, exactly one succeeds', async () => {
    const tool = writeFile({ root })
    for (const path of ['created', 'replaced']) {
      if (path === 'replaced') await write(path, 'old')
      const { precondition = '' } = (await preview(path))!
      const works = Array.from({ length: 8 }, (_, n) =>
        tool.run({ path, content: `new ${n}` }, { ...use, precondition }),
      )
      const results = await Promise.allSettled(works)
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    }
  })

  test('a check knows what happened, and says when it does not', async () => {
    expect(await check('notes.txt')).toEqual({ happened: false })
    await write('notes.txt')
    expect(await check('notes.txt')).toEqual({
      happened: true,
      output: 'Wrote notes.txt (5 bytes).',
    })
    await write('notes.txt', 'from someone else')
    expect(await check('notes.txt')).toBeUndefined()
    await fs.symlink(join(outside, 'secret.txt'), join(own, 'link'))
    expect(await check('link', 'secret')).toBeUndefined()
  })

  test('is described in one sentence', () => {
    const input = { path: 'notes.txt', content: 'hello' }
    expect(writeFile({ root }).describe?.(input, use)).toBe('Write notes.txt (5 bytes)')
    expect(readFile({ root }).describe?.(input, use)).toBe('Read notes.txt')
    expect(listFiles({ root }).describe?.({}, use)).toBe('List the files in the workspace')
  })
})

describe('out of the workspace', () => {
  const paths = [
    '',
    '..',
    '../outside/secret.txt',
    'a/../../outside/secret.txt',
    'a/..',
    '/etc/passwd',
    '//etc/passwd',
    'C:/Windows/win.ini',
    'C:secret',
    '..\\outside\\secret.txt',
    'a\0b',
    'notes.txt\0.png',
    'a\nb',
    'a\u202Etxt.exe',
    'a\uD800b',
    'x'.repeat(256),
    'é'.repeat(128),
    `${'a/'.repeat(40)}b`,
    'a/'.repeat(600),
  ]
  test.each(paths)('no path leads there: %j', async (path) => {
    await write('a/b.txt')
    await allRefused([read(path), list(path), write(path), preview(path)])
    expect(await check(path)).toBeUndefined()
    for (const tool of [readFile({ root }), listFiles({ root })]) {
      expect(readInput(tool, { path })).toHaveProperty('issues')
    }
    expect(readInput(writeFile({ root }), { path, content: '' })).toHaveProperty('issues')
  })

  test.each(['.', './', 'a', 'a/', 'a/.', './/'])('a folder is not a file: %j', async (path) => {
    await write('a/b.txt')
    await allRefused([read(path), write(path), preview(path)], /folder/)
  })

  test.each(['notes.txt/x', 'notes.txt/x/y'])('a file is not a folder: %j', async (path) => {
    await write('notes.txt')
    await allRefused([read(path), list(path), write(path), preview(path)], /not a folder/)
  })

  test.each([
    ['a link to a file', 'link', () => join(outside, 'secret.txt')],
    ['a relative link', 'link', () => '../../../outside/secret.txt'],
    ['a link to a file inside', 'link', () => 'inside.txt'],
    ['a dangling link', 'link', () => join(outside, 'new.txt')],
    ['a link to itself', 'link', () => 'link'],
    ['a link to a folder, as a parent', 'link/secret.txt', () => outside],
    ['a link to a folder, higher up', 'link/folder/new.txt', () => outside],
    ['a dangling link as a parent', 'link/new.txt', () => join(outside, 'nowhere')],
    ['a link to /proc/self/root', 'link/etc/passwd', () => '/proc/self/root'],
  ])('no link leads there: %s', async (_name, path, target) => {
    await write('inside.txt', 'inside')
    await fs.symlink(target(), join(own, 'link'))
    await allRefused([read(path), write(path, 'broken out'), preview(path)], /link/)
    await refused(list('link'))
    await refused(list('link/folder'))
    expect(await list()).toContain('link (a link, not followed)')
    expect(await fs.readdir(outside)).toEqual(['folder', 'secret.txt'])
    expect(await fs.readdir(join(outside, 'folder'))).toEqual([])
    expect(await fs.readFile(join(outside, 'secret.txt'), 'utf8')).toBe('secret')
    expect(await read('inside.txt')).toBe('inside')
  })

  test('a hard link is cut by a write, so the file outside keeps its content', async () => {
    await write('notes.txt')
    await fs.link(join(outside, 'secret.txt'), join(own, 'hard'))
    await write('hard', 'mine')
    expect(await fs.readFile(join(outside, 'secret.txt'), 'utf8')).toBe('secret')
  })

  test('a pipe is refused at once instead of waited for', async () => {
    await write('notes.txt')
    execFileSync('mkfifo', [join(own, 'pipe')])
    await allRefused([read('pipe'), write('pipe'), preview('pipe')], /not a regular file/)
    await allRefused([read('pipe/x'), list('pipe'), write('pipe/x')])
    expect(await list()).toContain('pipe (not a regular file)')
  })

  test.skipIf(!existsSync('/proc/self/fd'))(
    'folders that turn into links lead nowhere',
    async () => {
      await write('swap/secret.txt', 'inside')
      let going = true
      const swapping = (async () => {
        while (going) {
          await fs.rename(join(own, 'swap'), join(own, 'real')).catch(() => {})
          await fs.symlink(outside, join(own, 'swap')).catch(() => {})
          await new Promise(setImmediate)
          await fs.unlink(join(own, 'swap')).catch(() => {})
          await fs.rename(join(own, 'real'), join(own, 'swap')).catch(() => {})
          await new Promise(setImmediate)
        }
      })()
      let succeeded = 0
      for (let n = 0; n < 400; n++) {
        const text = await read('swap/secret.txt').catch(() => undefined)
        if (text !== undefined) expect(text).toBe('inside')
        await write('swap/secret.txt', 'inside').then(
          () => succeeded++,
          () => {},
        )
      }
      going = false
      await swapping
      expect(await fs.readFile(join(outside, 'secret.txt'), 'utf8')).toBe('secret')
      expect(await fs.readdir(outside)).toEqual(['folder', 'secret.txt'])
      expect(succeeded).toBeGreaterThan(0)
    },
  )

  test.skipIf(!existsSync('/proc/self/fd'))('leaves no descriptor open', async () => {
    const open = async () => (await fs.readdir('/proc/self/fd')).length
    await write('a/b.txt')
    const before = await open()
    for (let n = 0; n < 50; n++) {
      await Promise.allSettled([read('a/b.txt'), read('a/no'), read('no/b'), write('a'), list('a')])
    }
    expect(await open()).toBeLessThan(before + 5)
  })
})
