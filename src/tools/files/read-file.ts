import { z } from 'zod'
import { defineTool } from '../../core/tool.ts'
import { openFolder } from './folder.ts'
import { fileOf, pathSchema } from './path.ts'
import { told } from './problem.ts'
import { bytesAt, textFrom } from './regular.ts'

export function readFile({ root }: { root: string }) {
  return defineTool({
    name: 'read_file',
    description: 'Reads a text file of the workspace, up to 1 MiB.',
    schema: z.strictObject({ path: pathSchema }),
    access: 'read',
    idempotent: true,
    describe: ({ path }) => `Read ${path}`,
    target: ({ path }) => path,
    run: ({ path }) => told(path, () => readText(root, path)),
  })
}

async function readText(root: string, path: string): Promise<string> {
  const text = textFrom(await readBytes(root, path))
  if (text === undefined) throw new Error(`${path} is not a text file.`)
  return text
}

export async function readBytes(root: string, path: string): Promise<Buffer> {
  const { folders, name } = fileOf(path)
  const folder = await openFolder(root, folders)
  try {
    return await bytesAt(folder, name)
  } finally {
    await folder.handle.close()
  }
}
