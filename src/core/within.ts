/**
 * Whether a path leads to a folder or into it, once every `.` and `..` is followed; `undefined` for what
 * other programs may read as another path (backslashes, control characters, nothing). By names only: links
 * are for the tool to refuse.
 */
export function isWithin(path: string, folder: string): boolean | undefined {
  if (path === '' || /[\\\p{Cc}\p{Cs}]/u.test(path)) return undefined
  if (path.startsWith('/') !== folder.startsWith('/')) return false
  const [names, wanted] = [followed(path), followed(folder)]
  return names !== undefined && wanted?.every((name, i) => names[i] === name)
}

/** The names along the way; `undefined` when it leads above where it begins. */
function followed(path: string): string[] | undefined {
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue
    if (name !== '..') names.push(name)
    else if (names.pop() === undefined) return undefined
  }
  return names
}
