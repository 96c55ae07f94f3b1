import type { IncomingMessage } from 'node:http'
import { AguiChat, delta } from './agui.ts'
import {
  handrail,
  kb,
  type Measured,
  median,
  ms,
  peerServer,
  quantile,
  table,
  withDirectory,
} from './support.ts'

const streams = 2_000

/** What a run in the middle of its answer costs while its model says nothing. */
export async function held(): Promise<void> {
  const peer = await measure(await peerServer())
  const ours = await withDirectory(async (directory) =>
    measure(await handrail(directory, { HANDRAIL_MAX_LEGS: String(streams + 100) })),
  )
  const memory = ['heap per stream', 'RSS per stream']
  const head = ['', ...memory, 'GET /info p50', 'p99', 'a delta to each', 'and the end']
  table(
    `7. ${streams.toLocaleString('en')} AG-UI streams held, each a run of its own that has said one delta`,
    [head, ['peer', ...peer], ['handrail', ...ours]],
    [
      'After a garbage collection; thread, run and agent are included. /info is asked while all are',
      'held. Then all models say a last delta in the same moment: until each client has its own, and',
      'until each run has ended, which Handrail has on disk by then.',
    ],
  )
}

async function measure(server: Measured): Promise<string[]> {
  const open: Held[] = []
  const hold = async () => {
    const one = listen(await new AguiChat(server).post('pause'))
    open.push(one)
    await one.first
  }
  await Promise.all(Array.from({ length: 20 }, hold))
  const before = await server.usage('collect')
  for (let n = 0; n < streams; n += 50) await Promise.all(Array.from({ length: 50 }, hold))
  const after = await server.usage('collect')
  const answers: number[] = []
  for (let n = 0; n < 100; n++) {
    const since = performance.now()
    await (await fetch(`${server.url}/copilotkit/info`)).json()
    answers.push(performance.now() - since)
  }
  const since = performance.now()
  await server.usage('release')
  await Promise.all(open.map((one) => one.second))
  const spoken = performance.now() - since
  await Promise.all(open.map((one) => one.end))
  const ended = performance.now() - since
  await server.stop()
  const each = (name: 'heapUsed' | 'rss') => kb((after[name] - before[name]) / streams)
  const info = [ms(median(answers)), ms(quantile(answers, 0.99))]
  return [each('heapUsed'), each('rss'), ...info, ms(spoken), ms(ended)]
}

type Held = Record<'first' | 'second' | 'end', Promise<void>>

/** The deltas of a held stream as they come, and its end. */
function listen(response: IncomingMessage): Held {
  let text = ''
  const until = (enough: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      response.on('data', () => enough() && resolve())
      response.on('error', reject)
      response.on('end', () => reject(new Error(`a stream ended early: ${text}`)))
    })
  response.on('data', (chunk) => {
    text += chunk
  })
  const deltas = () => text.split(delta).length - 1
  return {
    first: until(() => deltas() > 0),
    second: until(() => deltas() > 1),
    end: until(() => text.includes('"RUN_FINISHED"')),
  }
}
