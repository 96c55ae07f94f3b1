import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { allow, entryOf, mcpStage, withMcp } from '../support/mcp.ts'
import { temporaryDirectory } from '../support/server.ts'
import { names as eventNames, find } from '../support/tools.ts'

const filesystem = entryOf('@modelcontextprotocol/server-filesystem')
const everything = entryOf('@modelcontextprotocol/server-everything')

const result = (frames: Parameters<typeof find>[0]) => find(frames, 'tool_result').tool_output

describe('the filesystem server', () => {
  test('its tools are offered by name, asked about, and run', async () => {
    const directory = await temporaryDirectory()
    const root = join(realpathSync(directory.path), 'root')
    mkdirSync(root)
    writeFileSync(join(root, 'a.txt'), 'hello from a')
    const files = { command: process.execPath, args: [filesystem, root] }
    const server = await withMcp({ files }, (said) =>
      said === 'read'
        ? ['files__read_text_file', { path: join(root, 'a.txt') }]
        : ['files__write_file', { path: join(root, 'b.txt'), content: 'b' }],
    )
    const read = await server.start('c', 'read')
    const asked = find(await read.until('approval_required'), 'approval_required')
    expect(asked).toMatchObject({ kind: 'approval', tool_name: 'files__read_text_file' })
    expect(asked.card.title).toMatch(/^Use Read Text File of files with path “.*a\.txt”$/)
    const interaction = read.response.headers.get('x-interaction-id')!
    const { approval_id } = asked
    await server.approve('c', interaction, { approval_id, approved: true })
    expect(result(await read.rest())).toBe('hello from a')
    const offered = server.model.requests[0]!.tools
    expect(offered.map(({ name }) => name)).toContain('files__list_directory')
    const spec = offered.find(({ name }) => name === 'files__read_text_file')!
    expect(spec.parameters).toMatchObject({ type: 'object', required: ['path'] })
    await server.close()

    const trusting = await withMcp({ files: { ...files, trust: true } }, (said) =>
      said === 'read'
        ? ['files__read_text_file', { path: join(root, 'a.txt') }]
        : ['files__write_file', { path: join(root, 'b.txt'), content: 'b' }],
    )
    const free = await (await trusting.start('d', 'read')).rest()
    expect(eventNames(free)).not.toContain('approval_required')
    const write = await trusting.start('d', 'write')
    const ask = find(await write.until('approval_required'), 'approval_required')
    const id = write.response.headers.get('x-interaction-id')!
    await trusting.approve('d', id, { approval_id: ask.approval_id, approved: true })
    await write.rest()
    expect(readFileSync(join(root, 'b.txt'), 'utf8')).toBe('b')
    await trusting.close()
    await directory.remove()
  })
})

describe('the everything server', () => {
  test('text, structured content, pictures, and input that does not fit', async () => {
    const server = await withMcp(
      { all: { command: process.execPath, args: [everything, 'stdio'] } },
      (said) => JSON.parse(said),
      { policy: allow },
    )
    const use = async (tool: string, input: unknown) => {
      const stream = await server.start('c', JSON.stringify([`all__${tool}`, input]))
      return result(await stream.rest())
    }
    expect(await use('echo', { message: 'hi' })).toBe('Echo: hi')
    expect(await use('get-sum', { a: 2, b: 3 })).toMatch(/5/)
    expect(await use('get-tiny-image', {})).toMatch(/\(image, image\/png, .*; not shown\)/)
    expect(await use('get-sum', { a: 'two' })).toMatch(/is not valid\. .*a: must be number/)
    expect(await use('nothing', {})).toBe('There is no tool named all__nothing.')
  })
})

describe('what a server may do to us', () => {
  const told = async (use: [string, unknown], more = {}) => {
    const stage = await mcpStage()
    const server = await withMcp({ stage: { ...stage.stdio, ...more } }, () => use, {
      policy: allow,
    })
    const frames = await (await server.start('c', 'go')).rest()
    return { stage, server, frames, text: result(frames) as string }
  }

  test('an error is told as one, noise is passed over, much is cut, a picture is described', async () => {
    const [fail, noise, huge, picture] = [
      await told(['stage__fail', {}]),
      await told(['stage__noise', {}]),
      await told(['stage__huge', { length: 3_000_000 }]),
      await told(['stage__picture', {}]),
    ]
    expect(fail.text).toBe('Error executing tool: The till is empty.')
    expect(noise.text).toBe('quiet again')
    expect(huge.text).toHaveLength(1_000_000 + '\n(cut: 2000000 more characters)'.length)
    expect(picture.text).toBe('Here it is:\n(image, image/png, 2 KB; not shown)')
  })

  test('progress is shown while it runs', async () => {
    const { frames, text } = await told(['stage__slow', { ms: 200 }])
    const output = frames.filter(({ event }) => event === 'tool_output')
    expect(output.map(({ data }) => data.delta).join('')).toMatch(/^part 1\npart 2\npart 3\n/)
    expect(text).toBe('done')
  })

  test('a server that hangs is in doubt at the timeout, and is restarted for the next call', async () => {
    const stage = await mcpStage()
    const use = (said: string): [string, unknown] => [`stage__${said}`, {}]
    // Trusted: `recall` only reads, so it is simply tried again. What `hang` did is not known.
    const mcp = { stage: { ...stage.stdio, timeout: 1_500, trust: true } }
    const server = await withMcp(mcp, use, { policy: allow })
    const say = async (text: string) => result(await (await server.start('c', text)).rest())
    const hung = await server.start('c', 'hang')
    const asked = find(await hung.until('approval_required'), 'approval_required')
    expect(asked).toMatchObject({ kind: 'in_doubt', tool_name: 'stage__hang' })
    expect(asked.card.evidence.error).toMatch(/^The call did not finish within 1\.5 s\. /)
    const interaction = hung.response.headers.get('x-interaction-id')!
    const { approval_id } = asked
    await server.approve('c', interaction, { approval_id, outcome: 'skip' })
    expect(result(await hung.rest())).toMatch(/Whether it happened is not known; it was skipped/)
    await expect.poll(() => say('recall'), { timeout: 15_000 }).toBe('nothing')
  })

  test('a cancel reaches it', async () => {
    const stage = await mcpStage()
    const use = () => ['stage__slow', { ms: 8_000 }] as [string, unknown]
    const server = await withMcp({ stage: stage.stdio }, use, { policy: allow })
    const stream = await server.start('c', 'go')
    await stream.until('tool_output')
    await server.cancel('c', stream.response.headers.get('x-interaction-id')!)
    expect(eventNames(await stream.rest())).toContain('cancelled')
    await expect.poll(() => stage.done(), { timeout: 5_000 }).toContain('cancelled')
  })
})
