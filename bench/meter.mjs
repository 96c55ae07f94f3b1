// Loaded into a measured process: answers its parent with what the process used up so far.
import { open } from 'node:fs/promises'

let syncs = 0
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

process.on('disconnect', () => process.exit()) // whoever measured is gone
process.on('message', (ask) => {
  if (ask === 'collect') for (let n = 0; n < 3; n++) globalThis.gc?.()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  process.send({ cpu: user + system, rss, heapUsed, syncs })
})
