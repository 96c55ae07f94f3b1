import {
  bareServer,
  handrail,
  type Measured,
  median,
  play,
  sleep,
  table,
  times,
  us,
  withDirectory,
} from './support.ts'

interface Case {
  label: string
  streams: number
  deltas: number
  repeats: number
  /** Deltas between two turns of the event loop; 0: one every 5 ms. */
  burst: number
  /** Messages the chat already has. */
  history: number
}

const one = { streams: 1, deltas: 1_000, repeats: 11, burst: 16, history: 2 }
const small = { ...one, label: '1 stream x 1,000' }
const large = { ...one, label: '1 stream x 16,000', deltas: 16_000, repeats: 7 }
const many = { ...one, label: '50 streams x 1,000', streams: 50, repeats: 5 }
const paced = { ...many, label: '50 x 300, one every 5 ms', deltas: 300, burst: 0, repeats: 3 }
const cases: Case[] = [
  small,
  large,
  many,
  { ...one, label: '1 x 1,000 after 400 messages', history: 400 },
  { ...one, label: '1 x 1,000, one per turn', burst: 1 },
  paced,
]

/** CPU microseconds per delta: at the stream's end, and when what comes later is done too. */
interface Cost {
  streamed: number
  later: number
}

/** Server CPU per delta: two bare writers and Handrail, each in a process of its own. */
export async function deltas(): Promise<void> {
  await withDirectory(async (directory) => {
    const servers = [await bareServer(), await bareServer(), await handrail(directory)]
    const runs = [
      runner(servers[0]!, 'deltas', false),
      runner(servers[1]!, 'coalesced', false),
      runner(servers[2]!, 'deltas', true),
    ]
    const warmUp = [large, large, large, { ...large, burst: 1 }, many, many, paced, small]
    for (const { prepare, run } of runs) {
      for (const each of warmUp) {
        await prepare({ ...each, repeats: 1 })
        await run(each)
      }
    }
    const costs: Cost[][] = []
    for (const each of cases) {
      const found: Cost[][] = runs.map(() => [])
      for (const { prepare } of runs) await prepare(each)
      // In turns, so that a noisy neighbour disturbs all three.
      for (let n = 0; n < each.repeats; n++)
        for (const [i, { run }] of runs.entries()) found[i]!.push(await run(each))
      costs.push(
        found.map((list) => ({
          streamed: median(list.map(({ streamed }) => streamed)),
          later: median(list.map(({ later }) => later)),
        })),
      )
    }
    for (const server of servers) await server.stop()
    print(costs)
  })
}

/** `prepare` makes the chats of a case, `run` plays it once. */
function runner(server: Measured, task: string, remembers: boolean) {
  let chats = 0
  let ready: string[] = []

  async function chatWith(history: number): Promise<string> {
    const url = `${server.url}/chats/bench-${++chats}/interactions`
    for (let n = 0; remembers && n < history; n += 2) await play(url, 'deltas 1 1')
    return url
  }

  return {
    async prepare({ streams, repeats, history }: Case): Promise<void> {
      // Making a long chat takes a while: its few more messages do not matter.
      const length = history > 2 ? 1 : streams * repeats
      const made = await Promise.all(Array.from({ length }, () => chatWith(history)))
      ready = Array.from({ length: streams * repeats }, (_, n) => made[n % length]!)
      if (remembers) await sleep(afterwards)
    },

    async run({ streams, deltas, burst }: Case): Promise<Cost> {
      const urls = ready.splice(0, streams)
      await sleep(50)
      const before = await server.usage()
      const texts = await Promise.all(urls.map((url) => play(url, `${task} ${deltas} ${burst}`)))
      const end = await server.usage()
      if (remembers) await sleep(afterwards)
      const last = await server.usage()
      const came = texts.reduce((sum, text) => sum + countOf(text), 0)
      if (came !== streams * deltas) throw new Error(`${came} deltas of ${streams * deltas} came`)
      return { streamed: (end.cpu - before.cpu) / came, later: (last.cpu - before.cpu) / came }
    },
  }
}

const countOf = (text: string) => text.split('event: answer_delta').length - 1

/** Milliseconds until the file store has moved a run to its journal and readable files. */
const afterwards = 400

function print(costs: readonly Cost[][]): void {
  const streamed = costs.map((row) => row.map((cost) => cost.streamed))
  const slope = streamed[0]!.map((cost, i) => (16 * streamed[1]![i]! - cost) / 15)
  const row = (label: string, [bare, coalesced, ours]: readonly number[], later?: number) => [
    ...[label, us(bare!), us(coalesced!), us(ours!), times(ours! / bare!)],
    ...[times(ours! / coalesced!), later === undefined ? '' : us(later)],
  ]
  const [at1000, at16000, , at400] = streamed.map((found) => found[2]!)
  table(
    '1. Server CPU per streamed delta (about 5 characters, about 105 bytes on the wire)',
    [
      ['', 'bare', 'coalesced', 'handrail', 'to bare', 'to coalesced', 'with upkeep'],
      ...cases.map(({ label }, i) => row(label, streamed[i]!, costs[i]![2]!.later)),
      row('marginal: one more delta', slope),
    ],
    [
      `Handrail to itself: 16,000 deltas to 1,000 ${times(at16000! / at1000!)}; after 400 messages to after 2 ${times(at400! / at1000!)}.`,
      'Rows: all CPU of the server from just before the request to just after the end of the stream,',
      'divided by the deltas; for Handrail that includes the durable run around them. The last row is',
      'the slope between 1,000 and 16,000. bare: node:http, a write per delta. coalesced: node:http, a',
      'write per turn of the event loop, which the source gives every 16 deltas unless said otherwise.',
      `with upkeep: ${afterwards} ms later, when journal and readable files are written. Medians.`,
    ],
  )
}
