import { bullmqQueue } from './queue.ts'

/** A server that dies while it looks at a thread. */
const log = { info: () => {}, warn: () => {} }
const queue = await bullmqQueue({ url: process.argv[2]!, log })
queue.ring('t')
await queue.serve(async () => {
  process.kill(process.pid, 'SIGKILL')
}, new AbortController().signal)
