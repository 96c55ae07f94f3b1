import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import type { Output } from './output.ts'
import { prelude } from './prelude.ts'
import { workerSource } from './worker-source.ts'

export interface Limits {
  /** Megabytes the code may use. */
  memory: number
  /** Milliseconds it may run. */
  time: number
  /** Bytes of output that are kept. */
  output: number
}

export interface Job {
  code: string
  signal: AbortSignal
  write(text: string): void
}

/** How a run ended, as the worker tells it or as we had to decide. */
export interface End {
  type: 'returned' | 'thrown' | 'timeout' | 'broken'
  /** The value or the error, in words; nothing for `undefined`. */
  text?: string
  line?: number
  /** The worker is stuck, broken or bloated: not to be used again. */
  spent: boolean
}

/** Resolves when QuickJS is loaded and the worker takes code. */
export function startWorker(limits: Limits): Promise<Worker> {
  const worker = new Worker(workerSource, {
    eval: true,
    name: 'run_code',
    // Nothing of ours inside, should someone get out of QuickJS: no environment, no loaders.
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    workerData: {
      quickjs: createRequire(import.meta.url).resolve('quickjs-emscripten'),
      pages: limits.memory * 16,
      prelude,
    },
    // A large stack, so that QuickJS reaches its own limit first and can say so.
    resourceLimits: { maxOldGenerationSizeMb: 64, stackSizeMb: 16 },
  })
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error('The sandbox could not start. Try again.'))
    worker.on('error', fail) // stays: an error nobody listens to would end the process
    worker.once('exit', fail)
    worker.once('message', () => {
      worker.off('exit', fail)
      resolve(worker)
    })
  })
}

/** Gives the worker code and waits for its end; whoever called ends the worker if it is `spent`. */
export function endOf(worker: Worker, job: Job, output: Output, time: number): Promise<End> {
  const over = new AbortController()
  const end = new Promise<End>((resolve, reject) => {
    const broken = () => resolve({ type: 'broken', spent: true })
    const late = setTimeout(() => resolve({ type: 'timeout', spent: true }), time)
    const hear = (message: 'more' | End) => {
      if (message !== 'more') return resolve(message)
      try {
        output.fetch()
      } catch (error) {
        reject(error)
      }
    }
    worker.on('message', hear)
    worker.on('error', broken)
    worker.on('exit', broken)
    job.signal.addEventListener('abort', () => reject(job.signal.reason), { signal: over.signal })
    over.signal.addEventListener('abort', () => {
      clearTimeout(late)
      worker.off('message', hear).off('error', broken).off('exit', broken)
    })
    worker.postMessage({ code: job.code, shared: output.shared })
  })
  return end.finally(() => over.abort())
}
