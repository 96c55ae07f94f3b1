import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { z } from 'zod'
import { defineTool, PreconditionChanged, type Preview, type ToolUse } from '../../core/tool.ts'
import { privateFile } from '../../lib/private.ts'
import { oneByOne, type Turn } from '../../lib/turn.ts'
import { createFrom } from './create.ts'
import type { Folder } from './folder.ts'
import { fileOf, pathSchema } from './path.ts'
import { codeOf, told } from './problem.ts'
import { bytesAt, largestFile, regularAt, textFrom } from './regular.ts'
import { temporaryName } from './temporary.ts'
import { openWorkspace, type Place } from './workspace.ts'

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants

const schema = z.strictObject({
  path: pathSchema,
  content: z.string().max(largestFile).describe('The whole new content of the file, as text'),
})
type Input = z.output<typeof schema>

export function writeFile({ root }: { root: string }) {
  const inTurn = oneByOne()
  return defineTool({
    name: 'write_file',
    description: 'Writes a text file in the workspace, replacing it if it exists. Up to 1 MiB.',
    schema,
    access: 'write',
    describe: (input) => `Write ${input.path} (${sizeOf(input)})`,
    target: ({ path }) => path,
    preview: (input, _signal, owner) => told(input.path, () => preview({ root, owner }, input)),
    check: (input, _effectId, _signal, owner) =>
      check({ root, owner }, input).catch(() => undefined),
    run: (input, use) => told(input.path, () => write({ root, owner: use }, input, use, inTurn)),
  })
}

async function write(
  place: Place,
  input: Input,
  { signal, precondition }: ToolUse,
  inTurn: Turn,
): Promise<string> {
  const { folders, name } = fileOf(input.path)
  const bytes = Buffer.from(input.content)
  if (bytes.length > largestFile) throw new Error(`The content is over ${largestFile} bytes.`)
  signal.throwIfAborted()
  const folder = await openWorkspace(place, folders, true)
  try {
    const existing = await regularAt(folder, name)
    const temporary = folder.at(temporaryName())
    try {
      const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, privateFile)
      try {
        await file.writeFile(bytes)
        if (existing) await file.chmod(existing.mode & 0o777)
        await file.sync()
      } finally {
        await file.close()
      }
      await inTurn(async () => {
        signal.throwIfAborted()
        await replace(folder, name, temporary, precondition)
      })
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
    await folder.handle.sync() // the new name has to survive a power cut too
    return outputOf(input)
  } finally {
    await folder.handle.close()
  }
}

/**
 * Puts the finished file in its place. Throws `PreconditionChanged` if the file there is not the one that the
 * approver saw. Writes of this process take turns here, so only another program can come between the check
 * and the rename; a file that was not there is created without replacing one that appeared.
 */
async function replace(
  folder: Folder,
  name: string,
  temporary: string,
  precondition: string | undefined,
): Promise<void> {
  const changed = () => new PreconditionChanged('The file changed after the approval.')
  if (precondition !== undefined) {
    const { state } = await contentAt(folder, name)
    if (state !== precondition) throw changed()
  }
  if (precondition !== absent) {
    // A rename replaces a link that appeared meanwhile; it does not follow it.
    return await rename(temporary, folder.at(name))
  }
  await createFrom(temporary, folder.at(name)).catch((error: unknown) => {
    throw codeOf(error) === 'EEXIST' ? changed() : error
  })
}

async function check(place: Place, input: Input) {
  const { state, bytes } = await contentOf(place, input.path)
  if (state === absent) return { happened: false as const }
  const same = bytes?.equals(Buffer.from(input.content))
  // Other content may mean it was not written, or that someone wrote after us: then it is for a
  // person to say whether to write again.
  return same ? { happened: true as const, output: outputOf(input) } : undefined
}

async function preview(place: Place, { path, content }: Input): Promise<Preview> {
  const { state: precondition, bytes } = await contentOf(place, path)
  if (precondition === absent) return { kind: 'diff', before: null, after: content, precondition }
  const before = bytes && textFrom(bytes)
  if (before !== undefined) return { kind: 'diff', before, after: content, precondition }
  // It can be replaced all the same; there is just nothing to compare with.
  const text = `The file that is there is not text, or too large.\n\n${content}`
  return { kind: 'text', text, precondition }
}

/** A file's content, and `state`: the precondition that holds until the content changes. */
interface Content {
  state: string
  /** Absent if there is no file, or if it is too large to be read. */
  bytes?: Buffer
}

const absent = 'absent'

async function contentOf(place: Place, path: string): Promise<Content> {
  const { folders, name } = fileOf(path)
  try {
    const folder = await openWorkspace(place, folders)
    return await contentAt(folder, name).finally(() => folder.handle.close())
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { state: absent } // a folder on the way is missing
    throw error
  }
}

async function contentAt(folder: Folder, name: string): Promise<Content> {
  const stats = await regularAt(folder, name)
  if (!stats) return { state: absent }
  // A program can set the time of the last write, but not that of the last change.
  if (stats.size > largestFile) return { state: `${stats.ino}:${stats.size}:${stats.ctimeMs}` }
  const bytes = await bytesAt(folder, name)
  return { state: `sha256:${createHash('sha256').update(bytes).digest('hex')}`, bytes }
}

const sizeOf = ({ content }: Input) => {
  const size = Buffer.byteLength(content)
  return size === 1 ? '1 byte' : `${size} bytes`
}

const outputOf = (input: Input) => `Wrote ${input.path} (${sizeOf(input)}).`
