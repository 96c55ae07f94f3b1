import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { GraphqlChat, partsOf, type RealRequest, responseOf } from './graphql-chat.ts'
import {
  afterwards,
  asking,
  large,
  long,
  longer,
  many,
  measure,
  type Round,
  round,
  runs,
  single,
  written,
} from './load.ts'
import {
  graphqlPeer,
  handrail,
  here,
  kb,
  type Measured,
  ms,
  percent,
  quiet,
  silent,
  table,
  times,
  us,
  withDirectory,
} from './support.ts'

const loads = [many, large, single, written, long, longer]
/** The same number of deltas in every row, in ever fewer and longer answers. */
const flat = [
  { ...large, label: '16 answers x 1,000', series: 16, deltas: 1_000, rounds: 3 },
  { ...large, label: '4 answers x 4,000', series: 4, deltas: 4_000, rounds: 3 },
  { ...large, label: '1 answer x 16,000', rounds: 3 },
  { ...written, label: '20 answers of 20 messages x 20', series: 20, messages: 20, rounds: 3 },
  { ...written, label: '4 answers of 100 messages x 20', series: 4, messages: 100, rounds: 3 },
  { ...written, label: '1 answer of 400 messages x 20', rounds: 3 },
]

/** The GraphQL wire against the runtime it stands in for. */
export async function graphql(): Promise<void> {
  const real = await realRequest()
  const open = (server: Measured) => new GraphqlChat(server, real)
  await withDirectory(async (directory) => {
    const servers = [await graphqlPeer(), await handrail(directory)]
    for (const server of servers)
      for (const load of [many, large, written, runs, { ...long, history: 40 }, many, runs])
        await round(server, load, () => open(server))
    printLoads(await measure(servers, loads, open))
    printFlat(await measure(servers, flat, open))
    const slow: string[][] = []
    for (const server of servers) slow.push(await readLate(server, open(server)))
    printSlow(slow)
    for (const server of servers) await server.stop()
  })
}

/** Asks the real client of the peer's package, in a process of its own. */
async function realRequest(): Promise<RealRequest> {
  const env = { PATH: process.env.PATH, ...silent }
  const run = promisify(execFile)
  const { stdout } = await run(process.execPath, [here('./peer-graphql/document.mjs')], { env })
  return JSON.parse(stdout) as RealRequest
}

function printLoads(found: readonly Round[][]): void {
  const rows = loads.map(({ label }, i) => {
    const [peer, ours] = found[i]! as [Round, Round]
    return [
      ...[label, us(peer.streamed), us(ours.streamed), times(peer.streamed / ours.streamed)],
      ...[us(ours.later), times(peer.later / ours.later), ms(peer.firsts[0]!), ms(ours.firsts[0]!)],
      ...[percent(peer.apart), percent(ours.apart)],
    ]
  })
  const upkeep = ['with upkeep', 'peer to ours']
  const head = [
    '',
    'peer',
    'handrail',
    'peer to ours',
    ...upkeep,
    'first: peer',
    'ours',
    'apart: peer',
    'ours',
  ]
  table(
    '6. Server CPU per delta of a GraphQL response: @copilotkit/runtime 1.10.6 and Handrail',
    [head, ...rows],
    [
      'The same words at the same pace; the document of the real client, sent by one that is not it,',
      'with all messages in every request; every word is looked for. peer: its Node endpoint, one',
      'runtime for all requests, an adapter that is a script; it keeps nothing, Handrail syncs every',
      `step. with upkeep: ${afterwards} ms later, for both. first: from the request to the first delta`,
      '(p50). apart: deltas that came as such; Handrail joins those that come within 5 ms, and so has',
      'less to send: the figures are per delta that the model made. Medians of rounds in turns.',
    ],
  )
}

function printFlat(found: readonly Round[][]): void {
  const rows = flat.map(({ label }, i) => [
    ...[label, ...found[i]!.map(({ streamed }) => us(streamed))],
    ...found[i]!.map(({ apart }) => percent(apart)),
  ])
  table('   The same with ever longer answers', [
    ['', 'peer', 'handrail', 'apart: peer', 'ours'],
    ...rows,
  ])
}

/** One by one, and more than the system keeps for a socket. */
const late = { messages: 1, deltas: 64_000 }

/** A client that reads nothing until the server has nothing more to do. */
async function readLate(server: Measured, chat: GraphqlChat): Promise<string[]> {
  const before = await server.usage('collect')
  const response = await chat.post(asking(late, 1))
  await quiet(server)
  const { heapUsed } = await server.usage('collect')
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  await chat.heard(chunks, late)
  const parts = partsOf(chunks)
  const { content } = responseOf(parts).messages[0]!
  const longest = content.reduce((most, { length }) => Math.max(most, length), 0)
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0)
  const counts = [parts.length, content.length, longest].map((count) => count.toLocaleString('en'))
  return [...counts, kb(bytes), kb(heapUsed - before.heapUsed)]
}

function printSlow([peer, ours]: readonly string[][]): void {
  table(
    `   ${late.deltas.toLocaleString('en')} deltas for a client that begins to read after the last of them`,
    [
      ['', 'parts', 'items', 'longest', 'read', 'heap'],
      ['peer', ...peer!],
      ['handrail', ...ours!],
    ],
    [
      'Deltas that wait for a socket may go out as one item; those before them went into what the',
      'system keeps for the connection. heap: what more the server held while the client read nothing.',
    ],
  )
}
