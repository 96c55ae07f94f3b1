import { type Answer, type Chat, hangUp } from './chat.ts'
import { type Measured, median, quantile, sleep } from './support.ts'

/** What a server is asked for in one round. */
export interface Load extends Answer {
  label: string
  /** Threads that speak at the same time. */
  chats: number
  /** Threads that follow each other in the place of each. */
  series: number
  /** Messages that each has before it is measured. */
  history: number
  /** Answers of each, one after the other. */
  turns: number
  /** Deltas that come in one turn of the event loop. */
  burst: number
  rounds: number
}

const one = { chats: 1, series: 1, history: 0, turns: 1, messages: 1, burst: 16, rounds: 5 }
export const many: Load = { ...one, label: '50 streams x 1,000', chats: 50, deltas: 1_000 }
/** Each round has one first delta: a middle takes more of them. */
const alone = { ...one, rounds: 11 }
export const large: Load = { ...alone, label: '1 stream x 16,000', deltas: 16_000 }
export const single: Load = { ...large, label: '1 stream x 16,000, one by one', burst: 1 }
export const written: Load = {
  ...{ ...alone, label: '1 answer of 400 messages x 20' },
  ...{ messages: 400, deltas: 20 },
}
export const fresh: Load = { ...one, label: '20 turns x 20, new thread', turns: 20, deltas: 20 }
export const long: Load = { ...fresh, label: '20 turns x 20 after 400 messages', history: 400 }
export const longer: Load = {
  ...{ ...long, label: '20 turns x 200 after 400 messages' },
  ...{ deltas: 200, rounds: 3 },
}
/** Warms what every run does, which takes hundreds of them. */
export const runs: Load = { ...fresh, chats: 8, turns: 50 }

/** Of one round: microseconds per delta at the streams' end and later, first deltas in ms (of many
 *  rounds the median and the 90th percentile), and the share of the deltas that came as such, not
 *  joined with others. */
export interface Round {
  streamed: number
  later: number
  firsts: number[]
  apart: number
}

/** The middle of the rounds for each server and load: `found[load][server]`. */
export async function measure(
  servers: readonly Measured[],
  loads: readonly Load[],
  open: (server: Measured) => Chat,
): Promise<Round[][]> {
  const found: Round[][] = []
  for (const load of loads) {
    const rounds: Round[][] = servers.map(() => [])
    // In turns, so that a noisy neighbour disturbs all.
    for (let n = 0; n < load.rounds; n++)
      for (const [i, server] of servers.entries())
        rounds[i]!.push(await round(server, load, () => open(server)))
    found.push(rounds.map(middle))
  }
  return found
}

const middle = (rounds: readonly Round[]): Round => ({
  streamed: median(rounds.map(({ streamed }) => streamed)),
  later: median(rounds.map(({ later }) => later)),
  firsts: [0.5, 0.9].map((q) =>
    quantile(
      rounds.flatMap(({ firsts }) => firsts),
      q,
    ),
  ),
  apart: median(rounds.map(({ apart }) => apart)),
})

/** Milliseconds in which a server does what it has put off: ours writes its readable files late. */
export const afterwards = 1_800

export async function round(server: Measured, load: Load, open: () => Chat): Promise<Round> {
  hangUp()
  const { chats, series, history, turns, messages, deltas, burst } = load
  const lines = Array.from({ length: chats }, () => Array.from({ length: series }, open))
  if (history > 0)
    for (const chat of lines.flat()) await speak(chat, history / 2, { messages: 1, deltas: 20 }, 16)
  await sleep(history > 0 ? afterwards : 100)
  const before = await server.usage()
  const spoken = await Promise.all(
    lines.map(async (line) => {
      const found: Spoken[] = []
      for (const chat of line)
        found.push(...(await speak(chat, turns, { messages, deltas }, burst)))
      return found
    }),
  )
  const end = await server.usage()
  await sleep(afterwards)
  const last = await server.usage()
  const all = chats * series * turns * messages * deltas
  const per = (usage: { cpu: number }) => (usage.cpu - before.cpu) / all
  const firsts = spoken.flat().map(({ first }) => first)
  const pieces = spoken.flat().reduce((sum, { pieces }) => sum + pieces, 0)
  return { streamed: per(end), later: per(last), firsts, apart: pieces / all }
}

/** Milliseconds to the first delta of a turn, and in how many pieces its text came. */
interface Spoken {
  first: number
  pieces: number
}

async function speak(chat: Chat, turns: number, answer: Answer, burst: number): Promise<Spoken[]> {
  const spoken: Spoken[] = []
  for (let n = 0; n < turns; n++) {
    const { first, chunks } = await chat.say(asking(answer, burst))
    spoken.push({ first, pieces: await chat.heard(chunks, answer) })
  }
  return spoken
}

/** The message that asks for it: see `answers` in source.mjs. */
export function asking({ messages, deltas }: Answer, burst: number): string {
  const task = messages > 1 ? `messages ${messages}` : 'deltas'
  return `${task} ${deltas} ${burst} ${filler}`
}

const filler = 'words of the length that people write to an assistant, give or take. '.repeat(2)
