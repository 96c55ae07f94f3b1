import { z } from 'zod'

/** A path as the model writes it. Refused here already, so that nobody is asked about a path
 *  that would be refused later. */
export const pathSchema = z
  .string()
  .describe('Path relative to the workspace, with forward slashes: notes/today.txt')
  .superRefine((path, context) => {
    const problem = problemOf(path)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })

/** The names along a path; an empty list is the workspace itself. */
export function namesOf(path: string): string[] {
  const problem = problemOf(path)
  if (problem) throw new Error(problem)
  return path.split('/').filter((name) => name !== '' && name !== '.')
}

/** The path of a file, as its folders and its own name. */
export function fileOf(path: string): { folders: string[]; name: string } {
  const folders = namesOf(path)
  const name = folders.pop()
  if (name === undefined || /\/\.?$/.test(path)) {
    throw new Error('That path is a folder, not a file. Name a file.')
  }
  return { folders, name }
}

// Control and direction characters could make an approval read as something else than it is.
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u
const longestPath = 1024
const longestName = 255 // bytes, the limit of every common file system
const deepest = 32

function problemOf(path: string): string | undefined {
  if (path === '') return 'The path is empty. Name a file in the workspace.'
  if (path.length > longestPath) return `The path is longer than ${longestPath} characters.`
  if (unprintable.test(path)) return 'The path contains characters that cannot be shown.'
  if (path.includes('\\')) return 'Use forward slashes in paths, not backslashes.'
  if (path.startsWith('/') || /^[a-z]:/i.test(path)) {
    return 'Absolute paths are not allowed. Use a path relative to the workspace.'
  }
  const names = path.split('/')
  if (names.includes('..')) return 'Paths may not contain "..": nothing outside is reachable.'
  if (names.length > deepest) return `The path is deeper than ${deepest} folders.`
  if (names.some((name) => Buffer.byteLength(name) > longestName)) {
    return `A name in the path is longer than ${longestName} bytes.`
  }
  return undefined
}
