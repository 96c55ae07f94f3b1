import { z } from 'zod'
import { defineTool } from '../../core/tool.ts'
import { fileOf, pathSchema } from './path.ts'
import { told } from './problem.ts'
import { bytesAt, textFrom } from './regular.ts'
import { openWorkspace, type Place } from './workspace.ts'

export function readFile({ root }: { root: string }) {
  return defineTool({
    name: 'read_file',
    description: 'Reads a text file of the workspace, up to 1 MiB.',
    schema: z.strictObject({ path: pathSchema }),
    access: 'read',
    idempotent: true,
    describe: ({ path }) => `Read ${path}`,
    target: ({ path }) => path,
    run: ({ path }, owner) => told(path, () => readText({ root, owner }, path)),
  })
}

async function readText(place: Place, path: string): Promise<string> {
  const text = textFrom(await readBytes(place, path))
  if (text === undefined) throw new Error(`${path} is not a text file.`)
  return text
}

export async function readBytes(place: Place, path: string): Promise<Buffer> {
  const { folders, name } = fileOf(path)
  const folder = await openWorkspace(place, folders)
  try {
    return await bytesAt(folder, name)
  } finally {
    await folder.handle.close()
  }
}
