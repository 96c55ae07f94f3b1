import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

export function filesIn(folder, skip = () => false) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !skip(name))
    .flatMap((item) => {
      const path = join(folder, item.name)
      return item.isDirectory() ? filesIn(path, skip) : [path]
    })
    .sort()
}

/** Contents and not times: a checkout, a copy or a restored cache all change times. */
export function digest(files) {
  const hash = createHash('sha256')
  for (const file of files) {
    hash.update(`${relative(root, file).split(sep).join('/')}\0`)
    hash.update(existsSync(file) ? readFileSync(file) : '')
  }
  return hash.digest('hex')
}

export function read(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}
