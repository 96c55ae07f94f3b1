import { z } from 'zod'
import type { Known } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { Thread } from '../../core/thread.ts'
import { clientId, json, type Route, route } from '../http.ts'

const whole = (most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value <= most, `must be ${most} or less`)

const query = z.strictObject({
  /** Only what belongs to this run. */
  run: z.string().min(1).max(200).optional(),
  /** Entries after this seq. */
  after: whole(Number.MAX_SAFE_INTEGER).default(0),
  limit: whole(500)
    .refine((value) => value > 0, 'must be 1 or more')
    .default(200),
})

const entry = z.object({
  seq: z.number(),
  at: z.string(),
  kind: z.string(),
  run: z.string().optional(),
  leg: z.string().optional(),
  actor: z.object({ type: z.string(), id: z.string(), wire: z.string().optional() }),
  /**
   * As it was written, without the data of large images and documents; null where it is too large for
   * a list, and then `size` says how large.
   */
  body: z.unknown(),
  size: z.number(),
})
const page = z.object({ entries: z.array(entry), next_after: z.number().nullable() })

/** Characters of one body, and of the bodies of one page. */
const most = { body: 64_000, page: 1_000_000 }
/** Entries that are looked at for one page, whoever they belong to. */
const reach = 2_000

/** A thread's journal as it is, for its owner: what happened, in order, in pages. */
export const journalRoute = (runtime: Runtime): Route =>
  route({
    method: 'get',
    path: '/threads/{id}/journal',
    summary: 'What happened on a thread, or in one run of it, entry by entry',
    params: z.object({ id: clientId }),
    query,
    responses: {
      200: { description: 'One page, oldest first', schema: page },
      400: { description: 'The request is not valid; `field` names what is wrong' },
      404: { description: 'There is no such thread or run, or it is not yours' },
    },
    wire: 'ops',
    async handle({ params, query: { run, after, limit }, caller }) {
      const thread = await runtime.open(caller, params.id)
      const { runs } = thread.state
      if (run !== undefined && !runs.has(run)) throw new RuntimeError('run_not_found')
      // What is said stands before the entry that queues its run, in the same transition.
      const first = run === undefined ? 0 : Math.max(0, runs.get(run)!.firstSeq - 20)
      return json(await read(thread, run, Math.max(after, first), limit))
    },
  })

async function read(thread: Thread, run: string | undefined, after: number, limit: number) {
  const entries: z.infer<typeof entry>[] = []
  let [at, size] = [after, 0]
  while (at < after + reach) {
    const some = await thread.entries(at, 200)
    if (some.length === 0) return { entries, next_after: null }
    for (const one of some) {
      const full = entries.length >= limit || size > most.page
      if (full) return { entries, next_after: at }
      at = one.seq
      if (run !== undefined && one.runId !== run) continue
      entries.push(entryJson(one))
      size += Math.min(entries.at(-1)!.size, most.body)
    }
  }
  return { entries, next_after: at }
}

function entryJson({ seq, at, kind, runId, legId, actor, body }: Known) {
  const size = JSON.stringify(body).length
  return {
    ...{ seq, at: new Date(at).toISOString(), kind },
    ...(runId !== undefined && { run: runId }),
    ...(legId !== undefined && { leg: legId }),
    ...{ actor, body: size > most.body ? null : body, size },
  }
}
