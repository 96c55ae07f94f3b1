import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { defineTool, PreconditionChanged } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, names, said } from '../support/tools.ts'

const write = (id: string, path: string, content: string) =>
  call(id, 'write_file', { path, content })
const done = [text('Done.')]

/** A file in the workspace of the only user of a server without keys. */
const place = ({ data }: Pick<Served, 'data'>, path: string) =>
  join(data, 'files/default/local', path)

async function put(server: Pick<Served, 'data'>, path: string, content: string): Promise<void> {
  await mkdir(dirname(place(server, path)), { recursive: true })
  await writeFile(join(server.data, 'files/.layout.json'), '{"version":1,"shared":[]}')
  await writeFile(place(server, path), content)
}

type Stream = Awaited<ReturnType<Served['start']>>

const asked = async (stream: Stream) =>
  find(await stream.until('approval_required'), 'approval_required')

async function approve(server: Served, stream: Stream, approval_id: string, more = {}) {
  const run = stream.response.headers.get('x-interaction-id')!
  const answer = { approval_id, approved: true, ...more }
  const response = await server.approve('c', run, answer)
  expect(response.status).toBe(200)
}

const asks = async (server: Served) => {
  const raised = (await server.journal('c')).filter(({ kind }) => kind === 'ask.raised')
  return raised.map(({ body }) => (body as { ask: { askId: string; digest: string } }).ask)
}

describe('write_file', () => {
  test('a file that changed after the card was shown is not overwritten: the card is shown again with the new diff', async () => {
    const model = scriptedModel([[write('1', 'notes.txt', 'new\n')], done])
    const server = await serve({ model })
    await put(server, 'notes.txt', 'seen\n')
    const stream = await server.start('c', 'go')
    const first = await asked(stream)
    expect(first.card.preview.text).toContain('-seen')
    await put(server, 'notes.txt', 'precious\n')
    await approve(server, stream, first.approval_id)
    const second = await asked(stream)
    expect(await readFile(place(server, 'notes.txt'), 'utf8')).toBe('precious\n')
    expect(second.approval_id).not.toBe(first.approval_id)
    expect(second.card.preview.text).toBe('@@ -1,1 +1,1 @@\n-precious\n+new')
    expect(second.card.risk.why).toMatch(/approved before.*has changed/)
    expect(second.card.replaces).toBe(first.approval_id)
    expect(second.card.digest).not.toBe(first.card.digest)
    await approve(server, stream, second.approval_id)
    const rest = await stream.rest()
    expect(find(rest, 'tool_result').tool_output).toContain('Wrote notes.txt')
    expect(await readFile(place(server, 'notes.txt'), 'utf8')).toBe('new\n')
  })

  test('an edited call that is asked about again is marked as edited, with the arguments of the model as original', async () => {
    const model = scriptedModel([[write('1', 'notes.txt', 'new\n')], done])
    const server = await serve({ model })
    await put(server, 'notes.txt', 'seen\n')
    const stream = await server.start('c', 'go')
    const first = await asked(stream)
    await put(server, 'notes.txt', 'precious\n')
    const edited_input = { path: 'notes.txt', content: 'edited\n' }
    await approve(server, stream, first.approval_id, { edited_input })
    const second = await asked(stream)
    expect(JSON.parse(second.tool_input)).toEqual(edited_input)
    await approve(server, stream, second.approval_id)
    const rest = await stream.rest()
    const ran = find(rest, 'tool_call')
    expect(JSON.parse(ran.tool_input)).toEqual(edited_input)
    expect(ran.edited).toBe(true)
    expect(JSON.parse(ran.original_tool_input)).toEqual({ path: 'notes.txt', content: 'new\n' })
    expect(said(model.requests[1]).at(-1)).toContain('The approver changed the arguments')
    expect(await readFile(place(server, 'notes.txt'), 'utf8')).toBe('edited\n')
  })

  /** A write that was approved with other arguments and asked about again, because the file had changed. */
  async function editedAndAskedAgain() {
    const model = scriptedModel([[write('1', 'a.txt', 'new\n')], done])
    const server = await serve({ model })
    await put(server, 'a.txt', 'seen\n')
    const stream = await server.start('c', 'go')
    const first = await asked(stream)
    await put(server, 'a.txt', 'precious\n')
    const edited_input = { path: 'a.txt', content: 'edited\n' }
    await approve(server, stream, first.approval_id, { edited_input })
    const second = await asked(stream)
    // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
    const read = async (path: string): Promise<any> =>
      await (await server.request('GET', path)).json()
    /** Arguments of the call as an AG-UI and a GraphQL client that join now get them. */
    const shown = async () => {
      const events = await agui(server.url, {}, {}, 'connect')
      const { messages } = events.findLast(({ type }) => type === 'MESSAGES_SNAPSHOT')!
      const call = messages.find((one: { toolCalls?: object[] }) => one.toolCalls)?.toolCalls[0]
      const { messages: list } = await generate(server.url, '', '', { messages: [] })
      const args = list.find((one: { arguments?: string[] }) => one.arguments)?.arguments ?? []
      return [JSON.parse(call.function.arguments), JSON.parse(args.join(''))]
    }
    return { server, stream, edited_input, second: second.approval_id, read, shown }
  }
  const written = { path: 'a.txt', content: 'new\n' }

  test('an edited call that is asked about again and rejected is shown as the model wrote it', async () => {
    const { server, stream, second, shown } = await editedAndAskedAgain()
    const run = stream.response.headers.get('x-interaction-id')!
    await server.approve('c', run, { approval_id: second, approved: false })
    await stream.rest()
    expect(await readFile(place(server, 'a.txt'), 'utf8')).toBe('precious\n')
    expect(await shown()).toEqual([written, written])
  })

  test('an edited call that is asked about again and approved is marked as edited on every wire', async () => {
    const { server, stream, edited_input, second, read, shown } = await editedAndAskedAgain()
    await approve(server, stream, second)
    const frames = await stream.rest()
    const marks = { edited: true, original_input: written }
    expect(find(frames, 'approved')).toMatchObject({ ...marks, edited_input })
    const approval = await read(`/approvals/${second}`)
    expect(approval).toMatchObject({ ...marks, input: edited_input, decision: { edited: true } })
    expect(approval.card.preview.text).toContain('+edited')
    expect(approval.original_card.preview.text).toContain('+new')
    const { decided } = await read('/copilotkit/threads/c/outline')
    const edit = { edited: true, input: edited_input, originalInput: written }
    expect(decided.at(-1)).toMatchObject({ id: second, ...edit })
    const { approvals } = await read('/approvals?state=settled')
    expect(approvals.find(({ id }: { id: string }) => id === second)).toMatchObject({
      edited: true,
    })
    expect(await shown()).toEqual([edited_input, edited_input])
  })

  test('a file that appears after the card was shown is not replaced, also after a restart', async () => {
    const directory = await temporaryDirectory()
    onTestFinished(directory.remove)
    const settings = () => ({ model: scriptedModel([[write('1', 'a.txt', 'new\n')], done, done]) })
    const before = await serve(settings(), { data: directory.path })
    const left = await before.start('c', 'go')
    const first = await asked(left)
    await before.recorded('c', 'run.waiting')
    await before.close()
    await put(before, 'a.txt', 'precious\n')
    const server = await serve({ model: scriptedModel([done]) }, { data: directory.path })
    const run = left.response.headers.get('x-interaction-id')!
    await server.approve('c', run, { approval_id: first.approval_id, approved: true })
    const joined = await server.join('c', run)
    await joined.until('approval_required')
    const second = await asked(joined)
    expect(second.card.preview.text).toContain('-precious')
    expect(await readFile(place(server, 'a.txt'), 'utf8')).toBe('precious\n')
    await server.approve('c', run, { approval_id: second.approval_id, approved: false })
    await joined.rest()
    expect(await readFile(place(server, 'a.txt'), 'utf8')).toBe('precious\n')
  })

  test('a link in the place of the file is not followed, and a file in the place of the link is shown first', async () => {
    const server = await serve({ model: scriptedModel([[write('1', 'a.txt', 'new\n')], done]) })
    await put(server, 'b.txt', 'linked\n')
    await symlink(place(server, 'b.txt'), place(server, 'a.txt'))
    const stream = await server.start('c', 'go')
    const first = await asked(stream)
    await rm(place(server, 'a.txt'))
    await put(server, 'a.txt', 'precious\n')
    await approve(server, stream, first.approval_id)
    const second = await asked(stream)
    expect(second.card.preview.text).toContain('-precious')
    await rm(place(server, 'a.txt'))
    await symlink(place(server, 'b.txt'), place(server, 'a.txt'))
    await approve(server, stream, second.approval_id)
    const third = await asked(stream)
    expect(third.card).not.toHaveProperty('preview')
    await approve(server, stream, third.approval_id)
    expect(find(await stream.rest(), 'tool_result').tool_output).toContain('Links are not followed')
    expect(await readFile(place(server, 'b.txt'), 'utf8')).toBe('linked\n')
  })

  test.each([
    ['deleted', (path: string) => rm(path), '+new'],
    ['replaced by an empty file', (path: string) => writeFile(path, ''), '+new'],
  ])(
    'a file that was %s after the card was shown is asked about again',
    async (_, change, diff) => {
      const server = await serve({ model: scriptedModel([[write('1', 'a.txt', 'new\n')], done]) })
      await put(server, 'a.txt', 'old\n')
      const stream = await server.start('c', 'go')
      const first = await asked(stream)
      await change(place(server, 'a.txt'))
      await approve(server, stream, first.approval_id)
      const second = await asked(stream)
      expect(second.card.preview.text).toContain(diff)
      expect(second.card.preview.text).not.toContain('-old')
      await approve(server, stream, second.approval_id)
      await stream.rest()
      expect(await readFile(place(server, 'a.txt'), 'utf8')).toBe('new\n')
    },
  )

  test('an unchanged file is written after one approval', async () => {
    const server = await serve({ model: scriptedModel([[write('1', 'a.txt', 'new')], done]) })
    await put(server, 'a.txt', 'old')
    const stream = await server.start('c', 'go')
    await approve(server, stream, (await asked(stream)).approval_id)
    expect(names(await stream.rest())).not.toContain('approval_required')
    expect(await readFile(place(server, 'a.txt'), 'utf8')).toBe('new')
    expect(await asks(server)).toHaveLength(1)
  })

  test('the second of two approved writes to one file is asked about again', async () => {
    const calls = [write('1', 'a.txt', 'one\n'), write('2', 'a.txt', 'two\n')]
    const server = await serve({ model: scriptedModel([calls, done]) })
    const stream = await server.start('c', 'go')
    const first = await asked(stream)
    const second = await asked(stream)
    await approve(server, stream, first.approval_id)
    await approve(server, stream, second.approval_id)
    const third = await asked(stream)
    const now = await readFile(place(server, 'a.txt'), 'utf8')
    expect(['one\n', 'two\n']).toContain(now)
    expect(third.card.preview.text).toContain(`-${now.trim()}`)
    await approve(server, stream, third.approval_id)
    await stream.rest()
    expect(await readFile(place(server, 'a.txt'), 'utf8')).not.toBe(now)
  })

  test('an edited path is asked about again when the person has not seen that file', async () => {
    const server = await serve({ model: scriptedModel([[write('1', 'a.txt', 'new\n')], done]) })
    await put(server, 'a.txt', 'old\n')
    await put(server, 'b.txt', 'precious\n')
    const stream = await server.start('c', 'go')
    const edited_input = { path: 'b.txt', content: 'edited\n' }
    await approve(server, stream, (await asked(stream)).approval_id, { edited_input })
    const second = await asked(stream)
    expect(second.card).toMatchObject({
      target: 'b.txt',
      preview: { text: '@@ -1,1 +1,1 @@\n-precious\n+edited' },
    })
    expect(JSON.parse(second.tool_input)).toEqual(edited_input)
    await approve(server, stream, second.approval_id)
    await stream.rest()
    expect(await readFile(place(server, 'a.txt'), 'utf8')).toBe('old\n')
    expect(await readFile(place(server, 'b.txt'), 'utf8')).toBe('edited\n')
  })

  test('edited content is written after one approval', async () => {
    const server = await serve({ model: scriptedModel([[write('1', 'a.txt', 'new\n')], done]) })
    await put(server, 'a.txt', 'old\n')
    const stream = await server.start('c', 'go')
    const edited_input = { path: 'a.txt', content: 'edited\n' }
    await approve(server, stream, (await asked(stream)).approval_id, { edited_input })
    expect(names(await stream.rest())).not.toContain('approval_required')
    expect(await readFile(place(server, 'a.txt'), 'utf8')).toBe('edited\n')
  })

  test('a remembered approval allows later writes, whatever the file contains then', async () => {
    const steps = [[write('1', 'a.txt', '1')], done, [write('2', 'a.txt', '2')], done]
    const server = await serve({ model: scriptedModel(steps) })
    const stream = await server.start('c', 'go')
    await approve(server, stream, (await asked(stream)).approval_id, { remember: true })
    await stream.rest()
    await put(server, 'a.txt', 'changed')
    expect(names(await (await server.start('c', 'again')).rest())).not.toContain(
      'approval_required',
    )
    expect(await readFile(place(server, 'a.txt'), 'utf8')).toBe('2')
  })
})

describe('a tool with a preview', () => {
  const counter = (changesInside = 0) => {
    const world = { version: 1, ran: [] as (string | undefined)[], left: changesInside }
    const tool = defineTool({
      name: 'publish',
      description: '',
      schema: z.strictObject({}),
      access: 'write',
      preview: async () => ({
        kind: 'text',
        text: `version ${world.version}`,
        precondition: `v${world.version}`,
      }),
      run: async (_input, { precondition }) => {
        if (world.left-- > 0) throw new PreconditionChanged('changed')
        world.ran.push(precondition)
        return 'Published.'
      },
    })
    return { world, tool }
  }
  const served = async ({ tool }: ReturnType<typeof counter>) => {
    const model = scriptedModel([[call('1', 'publish', {})], done])
    const server = await serve({ model, tools: [tool], builtIns: false })
    return { server, stream: await server.start('c', 'go') }
  }

  test('a precondition that does not hold any more raises a new ask instead of running the tool', async () => {
    const box = counter()
    const { server, stream } = await served(box)
    const first = await asked(stream)
    box.world.version = 2
    await approve(server, stream, first.approval_id)
    const second = await asked(stream)
    expect(second.card.preview.text).toBe('version 2')
    expect(box.world.ran).toEqual([])
    await approve(server, stream, second.approval_id)
    await stream.rest()
    expect(box.world.ran).toEqual(['v2'])
    const [one, two] = await asks(server)
    expect(one!.digest).not.toBe(two!.digest)
  })

  test('an AG-UI client that received an edit gets the original arguments back when the call is asked about again', async () => {
    const box = counter(1)
    const schema = z.strictObject({ page: z.string() })
    const model = scriptedModel([[call('1', 'publish', { page: 'a' })], done])
    const server = await serve({ model, tools: [{ ...box.tool, schema }], builtIns: false })
    const messages = [{ id: 'u', role: 'user', content: 'go' }]
    const first = (await agui(server.url, { messages })).at(-1).outcome.interrupts
    const payload = { approved: true, editedArgs: { page: 'b' } }
    const resume = [{ interruptId: first[0].id, status: 'resolved', payload }]
    const events = await agui(server.url, { runId: 'r2', messages, resume })
    const shown = events.flatMap(({ type, messages }) => {
      if (type !== 'MESSAGES_SNAPSHOT') return []
      const { toolCalls } = messages.find((one: { toolCalls?: object[] }) => one.toolCalls)
      return [JSON.parse(toolCalls[0].function.arguments)]
    })
    expect(shown.at(-1)).toEqual({ page: 'a' })
  })

  test('PreconditionChanged thrown by run raises a new ask, and the approved call runs once', async () => {
    const box = counter(1)
    const { server, stream } = await served(box)
    await approve(server, stream, (await asked(stream)).approval_id)
    const second = await asked(stream)
    expect(box.world.ran).toEqual([])
    await approve(server, stream, second.approval_id)
    expect(find(await stream.rest(), 'tool_result').tool_output).toBe('Published.')
    expect(box.world.ran).toEqual(['v1'])
    const kinds = (await server.journal('c')).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'effect.unknown')).toEqual([])
  })

  test('a preview that fails when the call is approved raises a new ask without a preview', async () => {
    const box = counter()
    let fails = false
    const { preview } = box.tool
    box.tool.preview = async (...args) => {
      if (fails) throw new Error('no')
      return await preview!(...args)
    }
    const { server, stream } = await served(box)
    const first = await asked(stream)
    fails = true
    await approve(server, stream, first.approval_id)
    const second = await asked(stream)
    expect(second.card).not.toHaveProperty('preview')
    await approve(server, stream, second.approval_id)
    await stream.rest()
    expect(box.world.ran).toEqual([undefined])
  })

  test('an approval of a card without a preview does not run the tool once there is a preview to see', async () => {
    const box = counter()
    let fails = true
    const { preview } = box.tool
    box.tool.preview = async (...args) => {
      if (fails) throw new Error('no')
      return await preview!(...args)
    }
    const { server, stream } = await served(box)
    const first = await asked(stream)
    expect(first.card).not.toHaveProperty('preview')
    fails = false
    await approve(server, stream, first.approval_id)
    const second = await asked(stream)
    expect(second.card.preview.text).toBe('version 1')
    expect(box.world.ran).toEqual([])
    await approve(server, stream, second.approval_id)
    await stream.rest()
    expect(box.world.ran).toEqual(['v1'])
  })

  test('a tool whose previews have no precondition runs after one approval', async () => {
    const box = counter()
    box.tool.preview = async () => ({ kind: 'text', text: `version ${box.world.version++}` })
    const { server, stream } = await served(box)
    await approve(server, stream, (await asked(stream)).approval_id)
    expect(names(await stream.rest())).not.toContain('approval_required')
    expect(box.world.ran).toEqual([undefined])
  })
})
