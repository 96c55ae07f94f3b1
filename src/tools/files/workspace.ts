import { randomUUID } from 'node:crypto'
import { lstat, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { ToolContext } from '../../core/tool.ts'
import { atOnce } from '../../lib/at-once.ts'
import { directoryName } from '../../lib/directory-name.ts'
import { privateDirectory, privateFile } from '../../lib/private.ts'
import { createFrom } from './create.ts'
import { type Folder, openFolder } from './folder.ts'
import { codeOf } from './problem.ts'
import { isTemporary, temporaryName } from './temporary.ts'

/** Directory that contains the workspaces of all tenants and users, and the user that a call is made for. */
export interface Place {
  root: string
  owner: ToolContext
}

/**
 * Opens a folder in the workspace of one user, `<root>/<tenant>/<user>`, without following links. No other
 * user has a path into it (I10). The caller closes the folder's handle.
 */
export async function openWorkspace(
  { root, owner: { tenant, user } }: Place,
  folders: readonly string[] = [],
  create = false,
): Promise<Folder> {
  const taken = new Set((await sharedNames(root, create)).map(folded))
  const own = [directoryName(tenant, taken), directoryName(user)]
  return await openFolder(root, [...own, ...folders], create)
}

/** Files of the single workspace that all users shared before each user got their own. */
export interface SharedFiles {
  /** Names that were moved into the workspace of `owner`. */
  moved: string[]
  /** Names that are still in the root directory. No tool can reach them. */
  left: string[]
}

/**
 * Moves the files of the former shared workspace into the workspace of `owner`. Without an owner it moves
 * nothing, because nobody can tell whose files they are. Never overwrites a file. A call that was interrupted
 * at any point can be repeated. A file that cannot be moved, such as a mounted directory, is left where it is.
 */
export async function settleSharedFiles(root: string, owner?: ToolContext): Promise<SharedFiles> {
  const names = await sharedIn(root)
  if (!owner || names.length === 0) return { moved: [], left: names }
  const workspace = await openWorkspace({ root, owner }, [], true)
  try {
    for (const name of names)
      if (!(await exists(workspace.at(name))))
        await rename(join(root, name), workspace.at(name)).catch(() => {})
    await workspace.handle.sync()
  } finally {
    await workspace.handle.close()
  }
  const left = await sharedIn(root)
  return { moved: names.filter((name) => !left.includes(name)), left }
}

/**
 * Names in the root directory that are of the shared workspace: those on the list, and every file, because workspaces
 * are directories. An older version that was started again may have written it.
 */
async function sharedIn(root: string): Promise<string[]> {
  const listed = new Set(await sharedNames(root, false))
  const entries = (await readdir(root, { withFileTypes: true }).catch(absent)) ?? []
  const shared = entries.filter((one) => listed.has(one.name) || !one.isDirectory())
  return shared.map(({ name }) => name).filter(isShared)
}

const layoutFile = '.layout.json'
const isShared = (name: string): boolean => name !== layoutFile && !isTemporary(name)
const layoutSchema = z.object({ version: z.literal(1), shared: z.array(z.string()) })

/**
 * Names in the root directory that are not workspaces: files and folders of the former shared workspace. They
 * are listed once, before the first workspace is made, so that a folder which happens to have the name of a
 * tenant never becomes this tenant's workspace.
 */
async function sharedNames(root: string, create: boolean): Promise<readonly string[]> {
  const path = join(root, layoutFile)
  const known = await readLayout(path)
  if (known) return known
  if (create) await mkdir(root, { recursive: true, mode: privateDirectory })
  const names = await readdir(root).catch(absent)
  if (names === undefined) return []
  const shared = names.filter(isShared)
  const temporary = join(root, temporaryName())
  try {
    await writeDurably(temporary, JSON.stringify({ version: 1, shared }))
    await createFrom(temporary, path) // fails if another process was first; its list is complete
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    return await sharedNames(root, create)
  } finally {
    await rm(temporary, { force: true })
  }
  const directory = await open(root)
  await directory.sync().finally(() => directory.close())
  return shared
}

/** The list, if there is one. A user's file or folder of that name gets another name, and is then listed like others. */
async function readLayout(path: string): Promise<readonly string[] | undefined> {
  const stats = await lstat(path).catch(absent)
  if (!stats) return undefined
  const text = stats.isFile() ? await readFile(path, 'utf8').catch(absent) : ''
  if (text === undefined) return undefined
  const layout = layoutSchema.safeParse(atOnce(() => JSON.parse(text)))
  if (layout.success) return layout.data.shared
  await rename(path, `${path}.${randomUUID()}`).catch(absent)
  return undefined
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', privateFile)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

const folded = (name: string): string => name.normalize('NFKC').toLowerCase()

const exists = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(absent)) !== undefined

function absent(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error
  return undefined
}
