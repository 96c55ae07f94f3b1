import type { Heartbeats } from '../sse.ts'
import type { Generated, RuntimeEvent } from './events.ts'

/** The same events, with an empty batch as a sign of life where nothing else was said for long. */
export function alive(generated: Generated, heartbeats: Heartbeats): Generated {
  return { ...generated, events: (signal) => withSigns(generated.events(signal), heartbeats) }
}

async function* withSigns(
  batches: AsyncIterable<readonly RuntimeEvent[]>,
  heartbeats: Heartbeats,
): AsyncGenerator<readonly RuntimeEvent[], void, undefined> {
  const iterator = batches[Symbol.asyncIterator]()
  let beat = () => {}
  const pulse = heartbeats.add(() => beat())
  try {
    for (let next = iterator.next(); ; ) {
      const sign = new Promise<undefined>((resolve) => {
        beat = () => resolve(undefined)
      })
      const given = await Promise.race([next, sign])
      pulse.sent()
      if (given?.done) return
      yield given?.value ?? []
      if (given) next = iterator.next()
    }
  } finally {
    pulse.stop()
    await iterator.return?.()
  }
}
