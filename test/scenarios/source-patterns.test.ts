import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

/**
 * Files that may make a RegExp at run time. Text from clients, models, MCP servers and remote agents goes to
 * `src/lib/linear.ts` instead, whose engine takes linear time and refuses patterns that are too large.
 */
const allowed: Record<string, string> = {
  'src/core/secret-texts.ts': 'joins constants',
  'src/lib/lookalikes.ts': 'joins constants',
  'src/lib/masked.ts': 'joins constants',
  'src/lib/words.ts': 'joins constants',
  'src/models/demo/ask.ts': 'joins constants',
  'src/wires/agui/single-route.ts': 'the paths of our own routes',
  'web/lib/schema.ts': 'only patterns without groups and with two quantifiers',
}

test('no source file makes a backtracking RegExp or a zod schema of a text from outside', async () => {
  const found: string[] = []
  for (const path of await sources()) {
    const text = await readFile(join(root, path), 'utf8')
    if (/\bRegExp\(/.test(text) && !(path in allowed)) found.push(`${path}: RegExp()`)
    // `fromJSONSchema` makes RegExps of the patterns of a schema.
    if (/\bfromJSONSchema\b/.test(text)) found.push(`${path}: fromJSONSchema()`)
    if (/\.regex\((?!\/|\s*$)/m.test(text)) found.push(`${path}: regex() of no literal`)
    // `match` and `search` make a RegExp of a string.
    if (/\.(?:match|matchAll|search)\((?:['"`]|new )/.test(text)) found.push(`${path}: match()`)
    if (/(?:require|import)\('ajv/.test(text) && path !== 'src/lib/json-schema.ts')
      found.push(`${path}: ajv`)
  }
  expect(found).toEqual([])
})

test('every file that may make a RegExp still does', async () => {
  for (const path of Object.keys(allowed))
    expect(await readFile(join(root, path), 'utf8'), path).toMatch(/\bRegExp\(/)
})

async function sources(): Promise<string[]> {
  const folders = ['src', 'web/app', 'web/components', 'web/lib']
  const lists = folders.map((folder) =>
    readdir(join(root, folder), { recursive: true, withFileTypes: true }),
  )
  return (await Promise.all(lists))
    .flat()
    .filter((one) => one.isFile() && /(?<!\.test)\.(?:ts|tsx|mts)$/.test(one.name))
    .map((one) => relative(root, join(one.parentPath, one.name)))
}
