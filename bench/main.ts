import { cpus, totalmem } from 'node:os'

/** `npm run bench` measures all; `npm run bench -- deltas` only that. Nothing here is a test. */
const topics: Record<string, () => Promise<() => Promise<void>>> = {
  // Loaded when they are asked for: the packages of the others may not be there.
  deltas: async () => (await import('./deltas.ts')).deltas,
  steps: async () => (await import('./steps.ts')).steps50,
  startup: async () => (await import('./startup.ts')).startup,
  streams: async () => (await import('./streams.ts')).streams500,
  peer: async () => (await import('./peer.ts')).peer,
  graphql: async () => (await import('./graphql.ts')).graphql,
  held: async () => (await import('./held.ts')).held,
  postgres: async () => (await import('./postgres.ts')).postgres,
  redis: async () => (await import('./redis.ts')).redis,
  cluster: async () => (await import('./cluster.ts')).cluster,
  inbox: async () => (await import('./inbox.ts')).inbox,
  langgraph: async () => (await import('./langgraph.ts')).graphs,
  workflow: async () => (await import('./workflow.ts')).workflows,
  search: async () => (await import('./search.ts')).search,
  page: async () => (await import('./page.ts')).page,
  hostile: async () => (await import('./hostile.ts')).hostile,
}

const asked = process.argv.slice(2)
const unknown = asked.find((name) => !Object.hasOwn(topics, name))
if (unknown)
  throw new Error(`There is no ${unknown}: name some of ${Object.keys(topics).join(', ')}.`)

setTimeout(() => {
  console.error('Something hangs: it has been an hour.')
  process.exit(1)
}, 3_600_000).unref()

const since = performance.now()
const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
const machine = [`${cpus().length} x ${cpus()[0]?.model.trim()}`, memory, process.platform]
console.log(`node ${process.version}, ${machine.join(', ')}`)
for (const [name, load] of Object.entries(topics)) {
  if (asked.length > 0 && !asked.includes(name)) continue
  const measure = await load()
  await measure()
}
const seconds = Math.round((performance.now() - since) / 1000)
console.log(`${['npm run bench', ...asked].join(' ')} (${seconds} s)`)
