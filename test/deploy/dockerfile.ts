import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))
export const read = (name: string) => readFile(`${root}${name}`, 'utf8')

export interface Instruction {
  name: string
  /** `--from=build` and the like. */
  flags: Record<string, string>
  text: string
}

export interface Stage {
  name: string
  /** The stage it goes on from, or an image of others. */
  from: string
  instructions: Instruction[]
}

/** The stages of a Dockerfile, as far as ours goes. */
export function parseDockerfile(text: string): Stage[] {
  const lines = text
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
  const stages: Stage[] = []
  for (const line of lines.filter((one) => one.trim() !== '')) {
    const [, name, options, text] = /^([A-Z]+)\s+((?:--\S+\s+)*)(.*)$/.exec(line)!
    const pairs = [...options!.matchAll(/--([\w-]+)=(\S+)/g)].map(([, key, value]) => [key, value])
    if (name === 'FROM') {
      const [, from, own = ''] = /^(\S+)(?: AS (\S+))?/.exec(text!)!
      stages.push({ name: own, from: from!, instructions: [] })
    }
    stages.at(-1)!.instructions.push({ name: name!, flags: Object.fromEntries(pairs), text: text! })
  }
  return stages
}

/** `["node", "-e", ...]` as words; for a text that is no list, as a shell runs it. */
export const wordsOf = (text: string): string[] =>
  text.startsWith('[') ? (JSON.parse(text) as string[]) : ['sh', '-c', text]

/** `A=1 B=2`. */
export const variablesOf = ({ text }: Instruction): Record<string, string> =>
  Object.fromEntries(text.split(/\s+/).map((one) => one.split(/=(.*)/s).slice(0, 2)))

/** Whether .dockerignore keeps a path out of the build: the last line that fits decides. */
export function ignores(dockerignore: string): (path: string) => boolean {
  const rules = dockerignore
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => ({ keep: line.startsWith('!'), fits: fitting(line.replace(/^!/, '')) }))
  return (path) => rules.findLast(({ fits }) => fits.test(path))?.keep === false
}

function fitting(pattern: string): RegExp {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&')
  const stars = { '**/': '(?:.*/)?', '*': '[^/]*' }
  const source = escaped.replace(/\*\*\/|\*/g, (star) => stars[star as keyof typeof stars])
  return new RegExp(`^${source}(?:/|$)`) // a folder stands for all that is in it
}
