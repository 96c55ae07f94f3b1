import type { RunnableConfig } from '@langchain/core/runnables'
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  ERROR,
  getCheckpointId,
  maxChannelVersion,
  type PendingWrite,
  TASKS,
  WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint'
import { type CheckpointRec, differing, type Rec, type Records, type Text } from './records.ts'

/** Where checkpoints are kept. */
export interface Shelf {
  /** Threads that have some. */
  threads(): readonly string[]
  /** All that was kept, this moment's included. */
  records(threadId: string): Records | Promise<Records>
  keep(threadId: string, checkpointId: string, rec: Rec): void | Promise<void>
  /** Returns the text of an error without secrets. By default, errors are kept as they are. */
  redact?(text: string): string
}

/**
 * LangGraph's checkpoints in the journal of a thread. The shelf shows one branch of it, so that "the latest" is
 * the one that the branch goes on from, whatever was done on others.
 */
export class JournalSaver extends BaseCheckpointSaver<number> {
  readonly #shelf: Shelf
  /** Serializing takes turns of the event loop; what is kept stays in the order of the calls. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(shelf: Shelf) {
    super()
    this.#shelf = shelf
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    await this.#turn
    const { thread_id: threadId, checkpoint_ns: ns = '' } = config.configurable ?? {}
    if (threadId === undefined) return undefined
    const id = getCheckpointId(config) || (await this.#shelf.records(threadId)).last(ns)
    return id === undefined ? undefined : await this.#tuple(threadId, ns, id)
  }

  async *list(
    config: RunnableConfig,
    { before, limit = Number.POSITIVE_INFINITY, filter }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    await this.#turn
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {}
    const until = before?.configurable?.checkpoint_id
    let left = limit
    for (const threadId of thread_id === undefined ? this.#shelf.threads() : [thread_id]) {
      for (const [ns, all] of (await this.#shelf.records(threadId)).checkpoints) {
        if (checkpoint_ns !== undefined && ns !== checkpoint_ns) continue
        for (const id of [...all.keys()].sort().reverse()) {
          if (checkpoint_id !== undefined && id !== checkpoint_id) continue
          if (until !== undefined && id >= until) continue
          const tuple = await this.#tuple(threadId, ns, id)
          if (!tuple || !fits(tuple.metadata, filter)) continue
          if (left-- <= 0) return
          yield tuple
        }
      }
    }
  }

  async put(
    config: RunnableConfig,
    { channel_values, channel_versions, ...checkpoint }: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread_id: threadId, checkpoint_ns: ns = '' } = config.configurable ?? {}
    const parentId = getCheckpointId(config)
    if (threadId === undefined) throw new Error('A checkpoint needs a thread_id.')
    await this.#inTurn(async () => {
      const records = await this.#shelf.records(threadId)
      const values: CheckpointRec['values'] = {}
      for (const channel of Object.keys(newVersions)) {
        const value = channel_values[channel]
        const text = value === undefined ? null : await this.#dump(value)
        const old = text && !text.bytes ? records.value(ns, parentId, channel) : undefined
        values[channel] = old && !old.bytes && text ? differing(text.text, old.text) : text
      }
      const rec: CheckpointRec = {
        type: 'checkpoint',
        ns,
        ...(parentId && { parentId }),
        checkpoint: (await this.#dump(checkpoint)).text,
        metadata: (await this.#dump(metadata)).text,
        versions: channel_versions,
        values,
      }
      await this.#shelf.keep(threadId, checkpoint.id, rec)
    })
    return {
      configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: checkpoint.id },
    }
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const {
      thread_id: threadId,
      checkpoint_ns: ns = '',
      checkpoint_id: id,
    } = config.configurable ?? {}
    if (threadId === undefined) throw new Error('Writes need a thread_id.')
    if (id === undefined) throw new Error('Writes need a checkpoint_id.')
    await this.#inTurn(async () => {
      const dumped = writes.map(async ([channel, value], i) => {
        const kept = channel === ERROR ? this.#redacted(value) : value
        return [WRITES_IDX_MAP[channel] ?? i, channel, await this.#dump(kept)] as const
      })
      const all = (await Promise.all(dumped)).map((one): [number, string, Text] => [...one])
      await this.#shelf.keep(threadId, id, { type: 'writes', ns, taskId, writes: all })
    })
  }

  async deleteThread(threadId: string): Promise<void> {
    await this.#inTurn(async () => {
      await this.#shelf.keep(threadId, 'none', { type: 'gone' })
    })
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {}) // whoever asked is told
    return done
  }

  async #tuple(threadId: string, ns: string, id: string): Promise<CheckpointTuple | undefined> {
    const records = await this.#shelf.records(threadId)
    const rec = records.find(ns, id)
    if (!rec) return undefined
    const rest = await this.#load({ text: rec.checkpoint })
    const channel_versions = { ...rec.versions } as Checkpoint['channel_versions']
    const checkpoint: Checkpoint = { ...rest, channel_versions, channel_values: {} }
    for (const channel of Object.keys({ ...channel_versions, ...rec.values })) {
      const value = records.value(ns, id, channel)
      if (value) checkpoint.channel_values[channel] = await this.#load(value)
    }
    const { parentId } = rec
    if (checkpoint.v < 4 && parentId !== undefined)
      await this.#withSends(checkpoint, records, ns, parentId)
    const pending = records.writes(ns, id).map(async ({ taskId, channel, value }) => {
      return [taskId, channel, await this.#load(value)] as CheckpointPendingWrite
    })
    const configOf = (checkpoint_id: string) => ({
      configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id },
    })
    return {
      config: configOf(id),
      checkpoint,
      metadata: await this.#load({ text: rec.metadata }),
      pendingWrites: await Promise.all(pending),
      ...(parentId !== undefined && { parentConfig: configOf(parentId) }),
    }
  }

  /** Before version 4, what was sent to nodes stood with the writes of the checkpoint before. */
  async #withSends(checkpoint: Checkpoint, records: Records, ns: string, parentId: string) {
    const sends = records.writes(ns, parentId).filter(({ channel }) => channel === TASKS)
    checkpoint.channel_values[TASKS] = await Promise.all(
      sends.map(({ value }) => this.#load(value)),
    )
    const versions = Object.values(checkpoint.channel_versions)
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined)
  }

  /** The error of a node. An error handler gets its message when the graph is resumed. */
  #redacted(error: unknown): unknown {
    const { message } = Object(error) as { message?: unknown }
    const { redact } = this.#shelf
    if (!redact || typeof message !== 'string') return error
    return { ...Object(error), message: redact(message) }
  }

  async #dump(value: unknown): Promise<Text> {
    const [type, data] = await this.serde.dumpsTyped(value)
    if (type !== 'json') return { text: Buffer.from(data).toString('base64'), bytes: type }
    return { text: typeof data === 'string' ? data : Buffer.from(data).toString('utf8') }
  }

  async #load({ text, bytes }: Text) {
    if (bytes === undefined) return await this.serde.loadsTyped('json', text)
    return await this.serde.loadsTyped(bytes, Buffer.from(text, 'base64'))
  }
}

const fits = (metadata: CheckpointMetadata | undefined, filter: Record<string, unknown> = {}) =>
  Object.entries(filter).every(([key, value]) => Object(metadata)[key] === value)
