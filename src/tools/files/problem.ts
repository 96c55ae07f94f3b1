const sentences: Record<string, string> = {
  ENOENT: 'does not exist',
  ELOOP: 'goes through a link, and links are not followed in the workspace',
  ENOTDIR: 'goes through something that is not a folder',
  EISDIR: 'is a folder, not a file',
  EACCES: 'may not be accessed',
  EPERM: 'may not be accessed',
  ENAMETOOLONG: 'has a name that is too long',
  ENOSPC: 'does not fit: the disk is full',
  EDQUOT: 'does not fit: the disk quota is used up',
  EROFS: 'cannot be written: the disk is read-only',
  EMFILE: 'cannot be opened: too many files are open. Try again',
  ENXIO: 'is not a regular file',
}

/** Runs file work so that the errors it throws are sentences: the system's own name the place on
 *  disk, which is nobody's business, so not even the cause is kept. */
export async function told<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const code = codeOf(error)
    if (code === undefined) throw error
    throw new Error(`${path} ${sentences[code] ?? `cannot be used (${code})`}.`)
  }
}

export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'syscall' in error && 'code' in error && error.code
  return typeof code === 'string' ? code : undefined
}
