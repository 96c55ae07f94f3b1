import { constants } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { z } from 'zod'
import { defineTool, type Preview } from '../../core/tool.ts'
import { openFolder } from './folder.ts'
import { fileOf, pathSchema } from './path.ts'
import { codeOf, told } from './problem.ts'
import { readBytes } from './read-file.ts'
import { largestFile, regularAt, textFrom } from './regular.ts'
import { temporaryName } from './temporary.ts'

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants

const schema = z.strictObject({
  path: pathSchema,
  content: z.string().max(largestFile).describe('The whole new content of the file, as text'),
})
type Input = z.output<typeof schema>

export function writeFile({ root }: { root: string }) {
  return defineTool({
    name: 'write_file',
    description: 'Writes a text file in the workspace, replacing it if it exists. Up to 1 MiB.',
    schema,
    access: 'write',
    describe: (input) => `Write ${input.path} (${sizeOf(input)})`,
    target: ({ path }) => path,
    preview: (input) => told(input.path, () => preview(root, input)),
    check: (input) => check(root, input).catch(() => undefined),
    run: (input, { signal }) => told(input.path, () => write(root, input, signal)),
  })
}

async function write(root: string, input: Input, signal: AbortSignal): Promise<string> {
  const { folders, name } = fileOf(input.path)
  const bytes = Buffer.from(input.content)
  if (bytes.length > largestFile) throw new Error(`The content is over ${largestFile} bytes.`)
  signal.throwIfAborted()
  const folder = await openFolder(root, folders, true)
  try {
    const existing = await regularAt(folder, name)
    const temporary = folder.at(temporaryName())
    try {
      const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
      try {
        await file.writeFile(bytes)
        if (existing) await file.chmod(existing.mode & 0o777)
        await file.sync()
      } finally {
        await file.close()
      }
      signal.throwIfAborted()
      // A rename replaces a link that appeared meanwhile; it does not follow it.
      await rename(temporary, folder.at(name))
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

async function check(root: string, input: Input) {
  if (!(await existsAt(root, input.path))) return { happened: false as const }
  const same = (await readBytes(root, input.path)).equals(Buffer.from(input.content))
  // Other content may mean it was not written, or that someone wrote after us: then it is for a
  // person to say whether to write again.
  return same ? { happened: true as const, output: outputOf(input) } : undefined
}

async function preview(root: string, { path, content }: Input): Promise<Preview> {
  if (!(await existsAt(root, path))) return { kind: 'diff', before: null, after: content }
  const bytes = await readBytes(root, path).catch(() => undefined)
  const before = bytes && textFrom(bytes)
  if (before !== undefined) return { kind: 'diff', before, after: content }
  // It can be replaced all the same; there is just nothing to compare with.
  return { kind: 'text', text: `The file that is there is not text, or too large.\n\n${content}` }
}

async function existsAt(root: string, path: string): Promise<boolean> {
  const { folders, name } = fileOf(path)
  try {
    const folder = await openFolder(root, folders)
    try {
      return (await regularAt(folder, name)) !== undefined
    } finally {
      await folder.handle.close()
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false // a folder on the way is missing
    throw error
  }
}

const sizeOf = ({ content }: Input) => {
  const size = Buffer.byteLength(content)
  return size === 1 ? '1 byte' : `${size} bytes`
}

const outputOf = (input: Input) => `Wrote ${input.path} (${sizeOf(input)}).`
