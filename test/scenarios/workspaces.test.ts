import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { chatsClient } from '../support/chats.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, said } from '../support/tools.ts'

const keys = { ann: 'key-of-ann-0123456789', bob: 'key-of-bob-0123456789' }
const withKeys = { HANDRAIL_API_KEYS: `${keys.ann}=acme/ann,${keys.bob}=zenith/bob` }

/** Calls the tool that the user's message names, as `tool {"json": "input"}`. */
const obeys = () =>
  scriptedModel(({ messages }) => {
    const last = messages.at(-1)!
    const [part] = last.parts
    if (last.role !== 'user' || part?.type !== 'text') return [text('Done.')]
    const [name = '', ...input] = part.text.split(' ')
    return [call(`call_${last.id}`, name, JSON.parse(input.join(' ')))]
  })

async function place(): Promise<string> {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  return path
}

type Client = ReturnType<typeof chatsClient>

const as = (url: string, key: string) => chatsClient(url, { authorization: `Bearer ${key}` })

async function result(client: Client, message: string): Promise<string> {
  const frames = await (await client.start('c', message)).rest()
  return find(frames, 'tool_result').tool_output
}

async function card(client: Client, path: string, content: string) {
  const stream = await client.start('c', `write_file ${JSON.stringify({ path, content })}`)
  const asked = find(await stream.until('approval_required'), 'approval_required')
  return { ...asked, stream, run: stream.response.headers.get('x-interaction-id')! }
}

async function write(client: Client, path: string, content: string): Promise<void> {
  const { approval_id, stream, run } = await card(client, path, content)
  await client.approve('c', run, { approval_id, approved: true })
  await stream.rest()
}

describe('two users with keys', () => {
  test('users of different tenants cannot list, read, see or overwrite each other’s files (I10)', async () => {
    const server = await serve({ model: obeys() }, { env: withKeys })
    const [ann, bob] = [keys.ann, keys.bob].map((key) => as(server.url, key)) as [Client, Client]
    await write(ann, 'notes.txt', 'secret of ann\n')
    expect(await result(ann, 'read_file {"path":"notes.txt"}')).toBe('secret of ann\n')
    expect(await result(bob, 'list_files {}')).toBe('The folder is empty.')
    expect(await result(bob, 'read_file {"path":"notes.txt"}')).toContain('does not exist')
    const asked = await card(bob, 'notes.txt', 'of bob\n')
    expect(JSON.stringify(asked.card)).not.toContain('secret')
    expect(asked.card.preview.text).toBe('@@ -0,0 +1,1 @@\n+of bob')
    await bob.approve('c', asked.run, { approval_id: asked.approval_id, approved: true })
    await asked.stream.rest()
    expect(await result(ann, 'read_file {"path":"notes.txt"}')).toBe('secret of ann\n')
    expect(await result(bob, 'read_file {"path":"notes.txt"}')).toBe('of bob\n')
    const files = join(server.data, 'files')
    expect(await readFile(join(files, 'acme/ann/notes.txt'), 'utf8')).toBe('secret of ann\n')
    expect(await readFile(join(files, 'zenith/bob/notes.txt'), 'utf8')).toBe('of bob\n')
    for (const path of ['acme', 'acme/ann'])
      expect((await stat(join(files, path))).mode & 0o777).toBe(0o700)
  })

  test('users of one tenant have workspaces of their own (I10)', async () => {
    const env = { HANDRAIL_API_KEYS: `${keys.ann}=acme/Ann,${keys.bob}=acme/ann` }
    const server = await serve({ model: obeys() }, { env })
    await write(as(server.url, keys.ann), 'notes.txt', 'of Ann\n')
    const list = await result(as(server.url, keys.bob), 'list_files {}')
    expect(list).toBe('The folder is empty.')
  })

  test.each([
    ['differ in case', 'Acme/ann', 'acme/ann'],
    ['are long and differ at the end', `${'x'.repeat(120)}a/ann`, `${'x'.repeat(120)}b/ann`],
    ['differ in a sign', 'a.b@c/ann', 'a-b-c/ann'],
    ['lead out of the directory', '../..', 'acme/..'],
  ])(
    'users whose names %s have workspaces of their own inside of the data directory',
    async (_, one, two) => {
      const env = { HANDRAIL_API_KEYS: `${keys.ann}=${one},${keys.bob}=${two}` }
      const server = await serve({ model: obeys() }, { env })
      const [ann, bob] = [keys.ann, keys.bob].map((key) => as(server.url, key)) as [Client, Client]
      await write(ann, 'notes.txt', 'of ann')
      expect(await result(bob, 'list_files {}')).toBe('The folder is empty.')
      await write(bob, 'notes.txt', 'of bob')
      expect(await result(ann, 'read_file {"path":"notes.txt"}')).toBe('of ann')
      const files = await readdir(join(server.data, 'files'), { recursive: true })
      expect(files.filter((path) => path.split('/').length === 3)).toHaveLength(2)
    },
  )

  test('files of the former shared workspace stay where they are and are served to nobody', async () => {
    const data = await place()
    const files = join(data, 'files')
    await mkdir(join(files, 'acme/ann'), { recursive: true })
    await writeFile(join(files, 'notes.txt'), 'of somebody')
    await writeFile(join(files, 'acme/ann/plan.txt'), 'of somebody')
    const logged: object[] = []
    const log = { info() {}, warn: (about: object) => void logged.push(about), error() {} }
    const server = await serve({ model: obeys() }, { env: withKeys, data, log })
    const ann = as(server.url, keys.ann)
    expect(await result(ann, 'list_files {}')).toBe('The folder is empty.')
    await write(ann, 'plan.txt', 'of ann')
    expect(await result(ann, 'list_files {}')).toBe('plan.txt (6 bytes)')
    expect(await readFile(join(files, 'notes.txt'), 'utf8')).toBe('of somebody')
    expect(await readFile(join(files, 'acme/ann/plan.txt'), 'utf8')).toBe('of somebody')
    expect(logged).toContainEqual({ directory: files, left: ['acme', 'notes.txt'] })
    await server.close()
    const again = await serve({ model: obeys() }, { env: withKeys, data })
    const list = await result(as(again.url, keys.ann), 'list_files {}')
    expect(list).toBe('plan.txt (6 bytes)')
  })
})

describe('a server without keys', () => {
  const shared = async (data: string) => {
    await mkdir(join(data, 'files/default/local'), { recursive: true })
    await mkdir(join(data, 'files/drafts'))
    await writeFile(join(data, 'files/notes.txt'), 'notes')
    await writeFile(join(data, 'files/drafts/a.txt'), 'draft')
    await writeFile(join(data, 'files/default/local/odd.txt'), 'odd')
  }
  const listed = 'default/\ndrafts/\nnotes.txt (5 bytes)'

  test('the shared workspace becomes the local user’s, with all files', async () => {
    const data = await place()
    await shared(data)
    const server = await serve({ model: obeys() }, { data })
    expect(await result(server, 'list_files {}')).toBe(listed)
    expect(await result(server, 'read_file {"path":"drafts/a.txt"}')).toBe('draft')
    expect(await result(server, 'read_file {"path":"default/local/odd.txt"}')).toBe('odd')
  })

  test.each([1, 2, 3])(
    'moving the shared workspace continues after it was interrupted with %i names left',
    async (count) => {
      const data = await place()
      await shared(data)
      const first = await serve({ model: obeys() }, { data })
      await first.close()
      const files = join(data, 'files')
      const own = join(files, (await readdir(files)).find((name) => name.includes('~'))!, 'local')
      // Undoes the last moves: a kill between two of them leaves exactly this.
      for (const name of ['notes.txt', 'drafts', 'default'].slice(0, count))
        await rename(join(own, name), join(files, name))
      const second = await serve({ model: obeys() }, { data })
      expect(await result(second, 'list_files {}')).toBe(listed)
      expect(await result(second, 'read_file {"path":"drafts/a.txt"}')).toBe('draft')
    },
  )

  test('a file of the shared workspace never replaces a file of the local user', async () => {
    const data = await place()
    await shared(data)
    const first = await serve({ model: obeys() }, { data })
    await first.close()
    await writeFile(join(data, 'files/notes.txt'), 'older')
    const second = await serve({ model: obeys() }, { data })
    expect(await result(second, 'read_file {"path":"notes.txt"}')).toBe('notes')
    expect(await readFile(join(data, 'files/notes.txt'), 'utf8')).toBe('older')
  })
})

test('a path condition of the policy is relative to the user’s own workspace', async () => {
  const policy = [
    {
      tool: 'write_file',
      arguments: { path: { within: 'drafts' } },
      decision: 'allow' as const,
    },
    { tool: 'write_file', decision: 'deny' as const, reason: 'Only drafts.' },
  ]
  const model = obeys()
  const server = await serve({ model, policy }, { env: withKeys })
  const ann = as(server.url, keys.ann)
  expect(await result(ann, 'write_file {"path":"drafts/a.txt","content":"a"}')).toContain('Wrote')
  await (await ann.start('c', 'write_file {"path":"acme/ann/drafts/a.txt","content":"a"}')).rest()
  expect(said(model.requests.at(-1)).at(-1)).toContain('Only drafts.')
  expect(await readdir(join(server.data, 'files/acme/ann'))).toEqual(['drafts'])
})
