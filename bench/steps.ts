import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../src/lib/clock.ts'
import { fileStore } from '../src/stores/file/store.ts'
import { handrail, median, ms, play, quantile, sleep, table, us, withDirectory } from './support.ts'

const chats = 50
const steps = 20

/** How many steps become durable in a second: a model call and a tool call that is allowed. */
export async function steps50(): Promise<void> {
  await withDirectory(async (directory) => {
    const server = await handrail(directory)
    const rows: string[][] = []
    const run = runner(server)
    await run(chats, 'warm', 2)
    rows.push([`${chats} chats at once`, ...(await run(chats, 'many', 3))])
    await sleep(1_800) // the last of the fifty reach their files
    rows.push(['1 chat', ...(await run(1, 'one', 5))])
    await server.stop()
    rows.push(...(await unlinked()))
    table(
      `2. Durable steps (a model call and an allowed tool call, no delay; ${steps} per run)`,
      [['', 'steps/s', 'fsyncs per step', 'CPU per step'], ...rows],
      [
        'fsyncs: all of the process, those of journals and index too.',
        'Unlinked: HANDRAIL_AUDIT=off, without the chain that an audit verifies.',
      ],
    )
    await appends(directory)
  })
}

type Server = Awaited<ReturnType<typeof handrail>>

/** Plays rounds of runs and gives steps per second, fsyncs and CPU. */
function runner(server: Server) {
  return async (chats: number, name: string, rounds: number): Promise<string[]> => {
    const urls = Array.from({ length: chats }, (_, n) => `${server.url}/chats/${name}-${n}`)
    const before = await server.usage()
    const since = performance.now()
    for (let n = 0; n < rounds; n++)
      await Promise.all(urls.map((url) => play(`${url}/interactions`, `steps ${steps}`)))
    const seconds = (performance.now() - since) / 1000
    const after = await server.usage()
    const all = chats * steps * rounds
    const syncs = ((after.syncs - before.syncs) / all).toFixed(2)
    return [`${Math.round(all / seconds)}`, syncs, us((after.cpu - before.cpu) / all)]
  }
}

/** The same without links: what they cost is the difference. */
async function unlinked(): Promise<string[][]> {
  return await withDirectory(async (directory) => {
    const server = await handrail(directory, { HANDRAIL_AUDIT: 'off' })
    const run = runner(server)
    await run(chats, 'warm', 2)
    const rows = [[`${chats} chats, unlinked`, ...(await run(chats, 'many', 3))]]
    await sleep(1_000)
    rows.push(['1 chat, unlinked', ...(await run(1, 'one', 5))])
    await server.stop()
    return rows
  })
}

async function appends(directory: string): Promise<void> {
  const store = await fileStore({ directory: join(directory, 'appends'), clock: systemClock })
  const plain = await open(join(directory, 'plain'), 'w')
  const body = JSON.stringify({ name: 'note', value: 'x'.repeat(200) })
  const base = { v: 1, threadId: 't', tx: 'tx', at: 0, fence: 0, digest: '' } as const
  const actor = { type: 'user', id: 'local' } as const
  const timed = async (work: (n: number) => Promise<unknown>) => {
    const took: number[] = []
    for (let n = 0; n < 500; n++) {
      const since = performance.now()
      await work(n)
      took.push(performance.now() - since)
    }
    return [ms(median(took)), ms(quantile(took, 0.99))]
  }
  const names = { tenant: 'default', owner: 'local', agent: 'default' }
  const row = { ...names, threadId: 't', clientId: 't', title: null, createdAt: 0, updatedAt: 0 }
  const thread = { ...row, archived: false, status: 'idle', leg: null } as const
  const created = {
    kind: 'thread.created',
    body: JSON.stringify(names),
    marks: { thread },
  } as const
  await store.append('t', [{ ...base, ...created, id: 'e', actor }], {})
  const rows = [
    [
      'append of one entry',
      ...(await timed((n) =>
        store.append('t', [{ ...base, id: `e_${n}`, kind: 'event', actor, body }], {}),
      )),
    ],
    [
      'write and fdatasync alone',
      ...(await timed(async () => {
        await plain.write(body)
        await plain.datasync()
      })),
    ],
  ]
  await plain.close()
  await store.close()
  table('   Latency of one append to the file store', [['', 'p50', 'p99'], ...rows])
}
