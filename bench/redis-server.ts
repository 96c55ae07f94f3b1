import { redisBus } from '../src/bus/redis/bus.ts'
import type { Piece } from '../src/core/agent.ts'

/** One server of the Redis bench: it writes, or reads, and tells its parent what it saw. */
export interface Task {
  threads: number
  /** Pieces of each thread. */
  pieces: number
  /** Pieces per turn of the event loop; 0: one every 5 ms. */
  burst: number
  round: number
}

export type Report =
  | { type: 'ready' }
  /** `cpu` in microseconds, `late` in milliseconds from the push of a piece to its reader. */
  | { type: 'done'; cpu: number; late: number[] }

const [role = '', url = '', id = ''] = process.argv.slice(2)
const log = { info: () => {}, warn: () => {} }
const bus = await redisBus({ url, serverId: id, log })
const tell = (report: Report) => process.send!(report)
/** The same for all processes of a machine. */
const now = () => Number(process.hrtime.bigint()) / 1e6
const turn = () => new Promise((resolve) => setImmediate(resolve))
const used = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}

process.on('disconnect', () => process.exit())
process.on('message', (task: Task) => {
  void (role === 'writer' ? write(task) : read(task))
})
tell({ type: 'ready' })

const names = ({ threads, round }: Task) =>
  Array.from({ length: threads }, (_, n) => `thread_${round}_${n}`)

async function write(task: Task): Promise<void> {
  const tails = names(task).map((name) => bus.tail(name))
  const before = used()
  for (const tail of tails) tail.begin(1, 'run', 1)
  const piece = (): Piece => ({ kind: 'text', id: 'msg_01', text: now().toFixed(3) })
  const { burst, pieces } = task
  let next = now()
  for (let n = 0; n < pieces; ) {
    for (let b = 0; b < Math.max(1, burst) && n < pieces; b++, n++)
      for (const tail of tails) tail.push(piece())
    if (burst > 0) await turn()
    else {
      next += 5
      await new Promise((resolve) => setTimeout(resolve, next - now()))
    }
  }
  const cpu = used() - before
  tell({ type: 'done', cpu, late: [] })
}

async function read(task: Task): Promise<void> {
  const before = used()
  const late: number[] = []
  const all = names(task).map(async (name) => {
    const tail = bus.tail(name)
    const reader = tail.reader()
    while (reader.offset < task.pieces) {
      await reader.wait()
      const at = now()
      for (; reader.offset < tail.pieces.length; reader.offset++) {
        if (reader.offset % 7 === 0) late.push(at - Number(tail.pieces[reader.offset]!.text))
      }
    }
    reader.close()
  })
  tell({ type: 'ready' })
  await Promise.all(all)
  tell({ type: 'done', cpu: used() - before, late })
}
