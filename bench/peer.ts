import { Chat, hangUp } from './agui.ts'
import {
  bareServer,
  handrail,
  type Measured,
  median,
  ms,
  peerServer,
  sleep,
  table,
  times,
  us,
  withDirectory,
} from './support.ts'

interface Load {
  label: string
  /** Threads that speak at the same time. */
  chats: number
  /** Messages that each has before it is measured. */
  history: number
  /** Answers of each, one after the other. */
  turns: number
  /** Messages of each answer, and deltas of each message. */
  messages: number
  deltas: number
  rounds: number
}

const one = { chats: 1, history: 0, turns: 1, messages: 1, rounds: 5 }
const many = { ...one, label: '50 streams x 1,000', chats: 50, deltas: 1_000 }
const large = { ...one, label: '1 stream x 16,000', deltas: 16_000 }
const written = { ...one, label: '1 run of 400 messages x 20', messages: 400, deltas: 20 }
const fresh = { ...one, label: '20 turns x 20, new thread', turns: 20, deltas: 20 }
const long = { ...fresh, label: '20 turns x 20 after 400 messages', history: 400 }
const longer = { ...long, label: '20 turns x 200 after 400 messages', deltas: 200, rounds: 3 }
/** Warms what every run does, which takes hundreds of them. */
const runs = { ...fresh, chats: 8, turns: 50 }
const loads: Load[] = [many, large, written, fresh, long, longer]

/** Of one round: microseconds per delta at the streams' end and later, and first deltas in ms. */
interface Round {
  streamed: number
  later: number
  firsts: number[]
}

/** The AG-UI wire against the runtime it stands in for, and against no runtime at all. */
export async function peer(): Promise<void> {
  await withDirectory(async (directory) => {
    const servers = [await bareServer(), await peerServer(), await handrail(directory)]
    for (const server of servers)
      for (const load of [many, large, written, runs, { ...long, history: 40 }, many, runs])
        await round(server, load)
    const found: Round[][] = []
    for (const load of loads) {
      const rounds: Round[][] = servers.map(() => [])
      // In turns, so that a noisy neighbour disturbs all three.
      for (let n = 0; n < load.rounds; n++)
        for (const [i, server] of servers.entries()) rounds[i]!.push(await round(server, load))
      found.push(rounds.map(middle))
    }
    for (const server of servers) await server.stop()
    print(found)
  })
}

const middle = (rounds: readonly Round[]): Round => ({
  streamed: median(rounds.map(({ streamed }) => streamed)),
  later: median(rounds.map(({ later }) => later)),
  firsts: [median(rounds.flatMap(({ firsts }) => firsts))],
})

/** Milliseconds in which a server does what it has put off: ours writes its readable files late. */
const afterwards = 1_600

async function round(server: Measured, load: Load): Promise<Round> {
  hangUp()
  const chats = Array.from(
    { length: load.chats },
    () => new Chat(server, load.messages > 1 ? 'writer' : 'default'),
  )
  await Promise.all(
    chats.map((chat) => speak(chat, { turns: load.history / 2, messages: 1, deltas: 20 })),
  )
  await sleep(load.history > 0 ? afterwards : 100)
  const before = await server.usage()
  const firsts = await Promise.all(chats.map((chat) => speak(chat, load)))
  const end = await server.usage()
  await sleep(afterwards)
  const last = await server.usage()
  const deltas = load.chats * load.turns * load.messages * load.deltas
  const per = (usage: { cpu: number }) => (usage.cpu - before.cpu) / deltas
  return { streamed: per(end), later: per(last), firsts: firsts.flat() }
}

/** The turns of a load; gives the milliseconds to each first delta. */
async function speak(
  chat: Chat,
  { turns, messages, deltas }: Pick<Load, 'turns' | 'messages' | 'deltas'>,
): Promise<number[]> {
  const task = messages > 1 ? `messages ${messages}` : 'deltas'
  const firsts: number[] = []
  for (let n = 0; n < turns; n++) {
    const { first, chunks } = await chat.say(`${task} ${deltas} 16 ${filler}`)
    await chat.heard(chunks, deltas, messages)
    firsts.push(first)
  }
  return firsts
}

const filler = 'words of the length that people write to an assistant, give or take. '.repeat(2)

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
  const firsts = loads.map(({ label }, i) => [label, ...found[i]!.map(({ firsts: [f] }) => ms(f!))])
  table(
    '   Time from the request to the first delta (p50)',
    [['', 'bare', 'peer', 'handrail'], ...firsts],
    [
      'Handrail: with the message and the intent to call the model on disk before the model is called.',
    ],
  )
}
