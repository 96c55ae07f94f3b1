import type { Dirent } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { z } from 'zod'
import { defineTool } from '../../core/tool.ts'
import type { Folder } from './folder.ts'
import { namesOf, pathSchema } from './path.ts'
import { codeOf, told } from './problem.ts'
import { isTemporary } from './temporary.ts'
import { openWorkspace, type Place } from './workspace.ts'

const mostShown = 1_000
const mostRead = 10_000 // beyond it the order is the file system's, not the alphabet's

export function listFiles({ root }: { root: string }) {
  return defineTool({
    name: 'list_files',
    description: 'Lists the files and folders in one folder of the workspace.',
    schema: z.strictObject({
      path: pathSchema.optional().describe('The folder to list; the whole workspace by default'),
    }),
    access: 'read',
    idempotent: true,
    target: ({ path }) => path ?? 'the workspace',
    describe: ({ path }) => `List the files in ${path ?? 'the workspace'}`,
    run: ({ path = '.' }, use) => told(path, () => list({ root, owner: use }, path, use.signal)),
  })
}

async function list(place: Place, path: string, signal: AbortSignal): Promise<string> {
  const names = namesOf(path)
  const folder = await openWorkspace(place, names).catch((error: unknown) => {
    // The first write makes the workspace; until then it is empty.
    if (names.length === 0 && codeOf(error) === 'ENOENT') return undefined
    throw error
  })
  if (!folder) return 'The folder is empty.'
  try {
    const entries = await entriesOf(folder, signal)
    const lines: string[] = []
    for (const entry of entries.slice(0, mostShown)) {
      signal.throwIfAborted()
      lines.push(await lineOf(folder, entry))
    }
    if (entries.length > mostShown) lines.push(`(only the first ${mostShown} are shown)`)
    return lines.join('\n') || 'The folder is empty.'
  } finally {
    await folder.handle.close()
  }
}

async function entriesOf(folder: Folder, signal: AbortSignal): Promise<Dirent[]> {
  const entries: Dirent[] = []
  for await (const entry of await opendir(folder.at('.'))) {
    signal.throwIfAborted()
    if (!isTemporary(entry.name)) entries.push(entry)
    if (entries.length === mostRead) break
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function lineOf(folder: Folder, entry: Dirent): Promise<string> {
  // A name may hold a line break, and must not look like a second file.
  const name = entry.name.replace(/\p{Cc}/gu, '?')
  if (entry.isDirectory()) return `${name}/`
  if (entry.isSymbolicLink()) return `${name} (a link, not followed)`
  if (!entry.isFile()) return `${name} (not a regular file)`
  const stats = await lstat(folder.at(entry.name)).catch(() => undefined)
  return stats ? `${name} (${stats.size} bytes)` : name
}
