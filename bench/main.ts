import { cpus, totalmem } from 'node:os'
import { cluster } from './cluster.ts'
import { deltas } from './deltas.ts'
import { graphql } from './graphql.ts'
import { held } from './held.ts'
import { inbox } from './inbox.ts'
import { graphs } from './langgraph.ts'
import { page } from './page.ts'
import { peer } from './peer.ts'
import { postgres } from './postgres.ts'
import { redis } from './redis.ts'
import { search } from './search.ts'
import { startup } from './startup.ts'
import { steps50 } from './steps.ts'
import { streams500 } from './streams.ts'
import { workflows } from './workflow.ts'

/** `npm run bench` measures all; `npm run bench -- deltas` only that. Nothing here is a test. */
const topics = {
  deltas,
  steps: steps50,
  startup,
  streams: streams500,
  peer,
  graphql,
  held,
  postgres,
  redis,
  cluster,
  inbox,
  langgraph: graphs,
  workflow: workflows,
  search,
  page,
}

const asked = process.argv.slice(2)
const unknown = asked.find((name) => !(name in topics))
if (unknown)
  throw new Error(`There is no ${unknown}: name some of ${Object.keys(topics).join(', ')}.`)

setTimeout(() => {
  console.error('Something hangs: this takes a quarter of an hour, and now it has been two.')
  process.exit(1)
}, 1_800_000).unref()

const since = performance.now()
const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
const machine = [`${cpus().length} x ${cpus()[0]?.model.trim()}`, memory, process.platform]
console.log(`node ${process.version}, ${machine.join(', ')}`)
for (const [name, measure] of Object.entries(topics))
  if (asked.length === 0 || asked.includes(name)) await measure()
const seconds = Math.round((performance.now() - since) / 1000)
console.log(`${['npm run bench', ...asked].join(' ')} (${seconds} s)`)
