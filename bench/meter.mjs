// Loaded into a measured process: answers its parent with what the process used up so far.
import { constants } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { monitorEventLoopDelay } from 'node:perf_hooks'

let syncs = 0
const { open } = promises
const file = await open(new URL(import.meta.url))
const handle = Object.getPrototypeOf(file)
await file.close()
for (const name of ['sync', 'datasync']) {
  const original = handle[name]
  handle[name] = function () {
    syncs++
    return original.call(this)
  }
}

// What is written to a file that syncs itself is synced too.
promises.open = async (path, flags, ...more) => {
  const opened = await open(path, flags, ...more)
  if (typeof flags === 'number' && flags & constants.O_DSYNC) {
    const { write } = opened
    opened.write = function (...given) {
      syncs++
      return write.apply(this, given)
    }
  }
  return opened
}
syncBuiltinESMExports()

// Milliseconds that the event loop was late since the last `lag`, where the bench wants to know.
const delay = process.env.BENCH_LAG ? monitorEventLoopDelay({ resolution: 5 }) : undefined
delay?.enable()
const lag = () => {
  if (!delay) return undefined
  const [p50, p99, max] = [delay.percentile(50), delay.percentile(99), delay.max]
  return { p50: p50 / 1e6, p99: p99 / 1e6, max: max / 1e6 }
}

process.on('disconnect', () => process.exit()) // whoever measured is gone
process.on('message', (ask) => {
  if (ask === 'collect') for (let n = 0; n < 3; n++) globalThis.gc?.()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  process.send({ cpu: user + system, rss, heapUsed, syncs, lag: lag() })
  if (ask === 'lag') delay?.reset()
})
