/** What is kept of a graph, as the journal holds it. */
export type Rec = CheckpointRec | WritesRec | { type: 'gone' }

export interface CheckpointRec {
  type: 'checkpoint'
  /** The subgraph it belongs to; the graph itself has none. */
  ns: string
  parentId?: string
  /** LangGraph's checkpoint without its values and versions, as its serializer writes it. */
  checkpoint: string
  versions: Record<string, number | string>
  metadata: string
  /** Channels that changed since the parent; `null` for those that have nothing any more. */
  values: Record<string, Value | null>
  /** The last message that the thread had: what comes after it, the graph has not seen. */
  after?: string
  /** Steps that the run had taken. */
  steps?: number
  /** The client's copy of the state that is in it. */
  given?: string
}

export interface WritesRec {
  type: 'writes'
  ns: string
  taskId: string
  writes: [place: number, channel: string, value: Text][]
}

/** Something serialized: text, or bytes as base64. */
export interface Text {
  text: string
  bytes?: string
}

/** A value, or how it differs from the one before: a list that grows costs what was added. */
export type Value = Text | { keep: number; add: string }

/** Beginnings shorter than this are not worth a reference. */
const worthwhile = 256

/** `text` told by what comes after the beginning that it shares with `before`. */
export function differing(text: string, before: string | undefined): Value {
  const most = Math.min(text.length, before?.length ?? 0)
  let keep = 0
  while (keep < most && text.charCodeAt(keep) === before!.charCodeAt(keep)) keep++
  const last = text.charCodeAt(keep - 1)
  if (last >= 0xd800 && last < 0xdc00) keep-- // not inside of a character
  return keep < worthwhile ? { text } : { keep, add: text.slice(keep) }
}

/** Records of one thread on one branch, in the order they were kept. */
export class Records {
  /** By namespace, then id; a map keeps the order. */
  readonly checkpoints = new Map<string, Map<string, CheckpointRec>>()
  readonly #writes = new Map<string, Map<string, WritesRec['writes'][number]>>()

  add(id: string, rec: Rec): void {
    if (rec.type === 'gone') {
      this.checkpoints.clear()
      this.#writes.clear()
    } else if (rec.type === 'checkpoint') {
      const all = this.checkpoints.get(rec.ns) ?? new Map<string, CheckpointRec>()
      all.delete(id) // written again, it is the newest
      all.set(id, rec)
      this.checkpoints.set(rec.ns, all)
    } else {
      const key = keyOf(rec.ns, id)
      const all = this.#writes.get(key) ?? new Map<string, WritesRec['writes'][number]>()
      this.#writes.set(key, all)
      for (const write of rec.writes) {
        const place = `${rec.taskId},${write[0]}`
        // The first stands, but for places that say how a task is at the moment.
        if (write[0] < 0 || !all.has(place)) all.set(place, write)
      }
    }
  }

  find(ns: string, id: string): CheckpointRec | undefined {
    return this.checkpoints.get(ns)?.get(id)
  }

  /** The one that was kept last. */
  last(ns: string): string | undefined {
    return [...(this.checkpoints.get(ns)?.keys() ?? [])].at(-1)
  }

  writes(
    ns: string,
    id: string,
  ): { taskId: string; place: number; channel: string; value: Text }[] {
    return [...(this.#writes.get(keyOf(ns, id)) ?? [])].map(([key, [place, channel, value]]) => {
      return { taskId: key.slice(0, key.lastIndexOf(',')), place, channel, value }
    })
  }

  /** A channel's value at a checkpoint: its own, or that of one before it with the same version. */
  value(ns: string, id: string, channel: string): Text | undefined {
    const ends: { keep: number; add: string }[] = []
    let rec = this.find(ns, id)
    for (let version = rec?.versions[channel]; rec?.versions[channel] === version; ) {
      const value = Object.hasOwn(rec?.values ?? {}, channel) ? rec?.values[channel] : undefined
      if (value === null) return undefined
      if (value && 'text' in value) return ends.length > 0 ? joined(value.text, ends) : value
      if (value) ends.push(value)
      rec = rec?.parentId === undefined ? undefined : this.find(ns, rec.parentId)
      if (!rec) return undefined
      if (value) version = rec.versions[channel] // it was told by how it differs from this one
    }
    return undefined
  }
}

const joined = (base: string, ends: { keep: number; add: string }[]): Text => ({
  text: ends.reduceRight((text, { keep, add }) => text.slice(0, keep) + add, base),
})

const keyOf = (ns: string, id: string): string => JSON.stringify([ns, id])
