import type { Worker } from 'node:worker_threads'
import { createOutput } from './output.ts'
import { createTurns } from './turns.ts'
import { type End, endOf, type Job, type Limits, startWorker } from './worker.ts'

export interface Ending extends End {
  output: string
  /** There was more output than is kept. */
  cut: boolean
}

const warm = 2 // workers that wait for the next run: starting one takes about 80 ms
const most = 4 // that run at once; each may use its whole memory limit

/** Runs JavaScript where it can reach nothing, and stops it for good when it is over a limit. */
export function createSandbox(limits: Limits) {
  const turns = createTurns(most)
  const idle: Worker[] = []

  async function start(): Promise<Worker> {
    const worker = await startWorker(limits)
    worker.once('exit', () => {
      const at = idle.indexOf(worker)
      if (at >= 0) idle.splice(at, 1)
    })
    return worker
  }

  async function rest(worker: Worker) {
    worker.unref() // an idle worker must not keep the process alive
    if (idle.length < warm) idle.push(worker)
    else await worker.terminate()
  }

  async function replace(worker: Worker) {
    await worker.terminate()
    if (idle.length === 0) start().then(rest, () => {}) // the next run will try, and tell
  }

  async function runOn(worker: Worker, job: Job): Promise<Ending> {
    let spent = true
    try {
      worker.ref()
      const output = createOutput(limits.output, job.write)
      const end = await endOf(worker, job, output, limits.time)
      spent = end.spent
      output.fetch()
      return { ...end, output: output.text, cut: output.cut }
    } finally {
      // Awaited: when a run is over, its code has stopped.
      await (spent ? replace(worker) : rest(worker))
    }
  }

  return {
    async run(job: Job): Promise<Ending> {
      await turns.enter(job.signal)
      try {
        const worker = idle.pop() ?? (await start())
        if (!job.signal.aborted) return await runOn(worker, job)
        await rest(worker)
        throw job.signal.reason
      } finally {
        turns.leave()
      }
    },
  }
}
