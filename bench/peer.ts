import { AguiChat } from './agui.ts'
import {
  afterwards,
  fresh,
  large,
  long,
  longer,
  many,
  measure,
  type Round,
  round,
  runs,
  written,
} from './load.ts'
import {
  bareServer,
  handrail,
  type Measured,
  ms,
  peerServer,
  table,
  times,
  us,
  withDirectory,
} from './support.ts'

const loads = [many, large, written, fresh, long, longer]

/** The AG-UI wire against the runtime it stands in for, and against no runtime at all. */
export async function peer(): Promise<void> {
  await withDirectory(async (directory) => {
    const servers = [await bareServer(), await peerServer(), await handrail(directory)]
    const open = (server: Measured) => new AguiChat(server)
    for (const server of servers)
      for (const load of [many, large, written, runs, { ...long, history: 40 }, many, runs])
        await round(server, load, () => open(server))
    const found = await measure(servers, loads, open)
    for (const server of servers) await server.stop()
    print(found)
  })
}

function print(found: readonly Round[][]): void {
  const rows = loads.map(({ label }, i) => {
    const [bare, peer, ours] = found[i]! as [Round, Round, Round]
    return [
      ...[label, us(bare.streamed), us(peer.streamed), us(ours.streamed)],
      ...[times(peer.streamed / ours.streamed), us(ours.later), times(peer.later / ours.later)],
    ]
  })
  const head = ['', 'bare', 'peer', 'handrail', 'peer to ours', 'with upkeep', 'peer to ours']
  table(
    '5. Server CPU per delta of an AG-UI run: @copilotkit/runtime 1.75.0 and Handrail',
    [head, ...rows],
    [
      'The same words at the same pace, the same client, which sends all its messages with every run',
      'and checks that every delta came. peer: its Node listener and in-memory runner; it keeps nothing',
      'on disk, Handrail syncs every step. bare: node:http, a write per delta. with upkeep:',
      `${afterwards} ms later, for both. Medians of rounds in turns.`,
    ],
  )
  const firsts = [0, 1].map((at) =>
    loads.map((_, i) => found[i]!.map(({ firsts }) => ms(firsts[at]!))),
  )
  const heads = ['bare', 'peer', 'handrail'].map((name) => `${name} p50`)
  table(
    '   Time from the request to the first delta',
    [
      ['', ...heads, ...heads.map((head) => head.replace('50', '90'))],
      ...loads.map(({ label }, i) => [label, ...firsts[0]![i]!, ...firsts[1]![i]!]),
    ],
    [
      'Handrail: with the message and the intent to call the model on disk before the model is called.',
    ],
  )
}
