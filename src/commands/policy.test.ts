import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { creation, entry } from '../../test/contracts/store.contract.ts'
import { workshop } from '../../test/support/file-workshop.ts'
import { type Postgres, startPostgres } from '../../test/support/postgres.ts'
import { serve } from '../../test/support/serve.ts'
import { find, tools } from '../../test/support/tools.ts'
import { readConfig } from '../config.ts'
import { type Body, draft, type Kind } from '../core/entries.ts'
import type { NewEntry, Store } from '../core/store.ts'
import { sha256 } from '../lib/canonical.ts'
import { systemClock } from '../lib/clock.ts'
import { call, scriptedModel, text } from '../models/scripted.ts'
import { fileStore } from '../stores/file/store.ts'
import { postgresStore } from '../stores/postgres/store.ts'
import { policy } from './policy.ts'

let database: Postgres
beforeAll(async () => {
  database = await startPostgres()
})
afterAll(() => database?.stop())
const { directory } = workshop()

async function run(env: Record<string, string>, ...args: string[]) {
  const said: string[] = []
  const config = readConfig({ DATABASE_URL: '', ...env })
  const say = (line: string) => void said.push(line)
  const code = await policy({ config, args: ['test', ...args], say, progress() {} })
  return { code, said }
}

const rules = `export default { policy: [
  { name: 'small sums', tool: 'send', arguments: { amount: { under: 50 } }, decision: 'allow' },
  { name: 'never to mallory', tool: 'send', arguments: { to: { equals: 'mallory' } }, decision: 'deny' },
  { name: 'looking', tool: 'look', decision: 'ask' },
] }`

async function configured(text = rules): Promise<string> {
  const path = join(await directory(), 'new.config.mjs')
  await writeFile(path, text)
  return path
}

const when = Date.parse('2026-10-02T14:03:00Z')
const ann = { type: 'user', id: 'ann' } as const
const timer = { type: 'system', id: 'timer' } as const

function written<K extends Kind>(kind: K, body: Body<K>, more: Partial<NewEntry> = {}): NewEntry {
  const made = draft(kind, body)
  const json = JSON.stringify(made.body)
  const at = { at: when, runId: 'r' }
  return { ...entry('t', { ...at, ...more }), kind, body: json, digest: sha256(json), marks: {} }
}

interface Past {
  amount: number
  to?: string
  answer?: 'approved' | 'rejected'
  by?: typeof ann | typeof timer
  at?: number
}

/** A thread in which each of these was asked about, and some calls asked nobody. */
async function filled(store: Store, id: string, asks: readonly Past[], calls = 0): Promise<void> {
  const body = { tenant: 'acme', owner: 'ann', clientId: id, agent: 'assistant' }
  const created = { ...creation(id, { clientId: id }), body: JSON.stringify(body) }
  const entries: NewEntry[] = [
    { ...created, digest: sha256(created.body) },
    written('run.queued', { agent: 'assistant', why: 'start' }),
  ]
  for (const [i, { amount, to = 'bob', answer, by = ann, at = when }] of asks.entries()) {
    const askId = `${id}-${i}`
    const ask = {
      ...{
        askId,
        kind: 'approval' as const,
        title: `Send ${amount} to “${to}”`,
        step: 's',
        key: 'k',
      },
      ...{ tool: 'send', callId: String(i), input: { to, amount } },
      ...{ deadline: at, atTimeout: 'reject' as const },
    }
    entries.push(written('ask.raised', { ask }, { at }))
    if (answer) entries.push(written('ask.answered', { askId, state: answer }, { actor: by, at }))
  }
  for (let i = 0; i < calls; i++) {
    const about = {
      effectId: `e${i}`,
      effect: 'tool' as const,
      name: 'look',
      key: 'k',
      digest: 'd',
    }
    entries.push(written('effect.intended', { ...about, attempt: 1, input: { at: 'x' } }))
  }
  await store.append(
    id,
    entries.map((one) => ({ ...one, threadId: id })),
    {},
  )
}

/** 500 asks over ten threads: what the page in the documentation shows. */
async function history(store: Store): Promise<void> {
  const asks: Past[] = [
    ...Array.from({ length: 411 }, (): Past => ({ amount: 5, answer: 'approved' })),
    { amount: 45, answer: 'rejected' },
    ...Array.from({ length: 3 }, (): Past => ({ amount: 80, to: 'mallory', answer: 'rejected' })),
    ...Array.from({ length: 85 }, (): Past => ({ amount: 80, answer: 'approved' })),
  ]
  for (let i = 0; i < 10; i++)
    await filled(store, `chat-${i}`, asks.slice(i * 50, i * 50 + 50), i === 0 ? 12 : 0)
}

describe('the policy test', () => {
  test('says what the documentation shows', async () => {
    const data = await directory()
    const store = await fileStore({ directory: data, clock: systemClock })
    await history(store)
    await store.close()
    const { code, said } = await run({ HANDRAIL_DATA: data }, '--config', await configured())
    expect(code).toBe(0)
    const page = await readFile(new URL('../../docs/policy.md', import.meta.url), 'utf8')
    const [, printed] =
      /handrail policy test --config new\.config\.mjs\n```\n\n```text\n([^`]+)\n```/.exec(page) ??
      []
    expect(said.join('\n')).toBe(printed)
  })

  test('says the same on Postgres', async () => {
    const store = await postgresStore({ url: database.url, schema: 'replayed' })
    await history(store)
    await store.close()
    const env = { DATABASE_URL: database.url, HANDRAIL_DATABASE_SCHEMA: 'replayed' }
    const { said } = await run(env, '--config', await configured(), '--json')
    const found = JSON.parse(said[0]!)
    expect(found).toMatchObject({
      threads: 10,
      unread: 0,
      asks: {
        allow: { total: 412, approved: 411, rejected: 1, other: 0 },
        deny: { total: 3, approved: 0, rejected: 3 },
        ask: { total: 85, approved: 85 },
      },
      calls: { allow: 0, ask: 12, deny: 0 },
    })
    expect(found.asks.allow.others).toEqual([
      {
        at: '2026-10-02T14:03:00.000Z',
        thread: 'chat-8',
        ...{ title: 'Send 45 to “bob”', rule: 'small sums', by: 'ann' },
      },
    ])
  })

  test('counts as rejected only what a person rejected, and only since then', async () => {
    const data = await directory()
    const store = await fileStore({ directory: data, clock: systemClock })
    const now = Date.now()
    await filled(store, 'c', [
      { amount: 1, answer: 'rejected', at: now - 2 * 86_400_000 },
      { amount: 2, answer: 'rejected', by: timer, at: now },
      { amount: 3, at: now },
      { amount: 4, answer: 'rejected', at: now },
    ])
    await store.close()
    const { said } = await run(
      { HANDRAIL_DATA: data },
      '--config',
      await configured(),
      '--since',
      '1d',
      '--json',
    )
    expect(JSON.parse(said[0]!).asks.allow).toMatchObject({
      total: 3,
      approved: 0,
      rejected: 1,
      other: 2,
    })
  })

  test('names twenty, and says how many more', async () => {
    const data = await directory()
    const store = await fileStore({ directory: data, clock: systemClock })
    await filled(
      store,
      'c',
      Array.from({ length: 30 }, () => ({ amount: 1, answer: 'rejected' as const })),
    )
    await store.close()
    const { said } = await run({ HANDRAIL_DATA: data }, '--config', await configured())
    expect(said[1]).toBe('Would have auto-approved 30 of 30, of which you rejected 30: these')
    expect(said.filter((line) => line.startsWith('  2026-10-02'))).toHaveLength(20)
    expect(said).toContain('  and 10 more')
  })

  test('reads beside a running server, and changes nothing', async () => {
    const box = tools()
    const steps = [[call('1', 'send', { to: 'bob', amount: 5 })], [text('No.')]]
    const server = await serve({ model: scriptedModel(steps), tools: box.all, builtIns: false })
    const stream = await server.start('mine', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    const reason = 'wrong\u202E account'
    await server.approve('mine', interaction, { approval_id, approved: false, reason })
    await stream.rest()
    const { store } = server.server
    if (!store.sync) return // on Postgres there is nothing to write out
    await store.sync()
    const before = await contentsOf(server.data)
    const { said } = await run({ HANDRAIL_DATA: server.data }, '--config', await configured())
    expect(said[0]).toBe('1 approval asked for, in 1 thread.')
    expect(said[2]).toMatch(
      /mine {2}Send 5 to “bob” {2}\(local: wrong⟦U\+202E⟧ account; now by small sums\)$/,
    )
    expect(await contentsOf(server.data)).toEqual(before)
  })

  test('goes on after a thread that cannot be read', async () => {
    const data = await directory()
    const store = await fileStore({ directory: data, clock: systemClock })
    await filled(store, 'a', [{ amount: 1, answer: 'approved' }])
    await filled(store, 'b', [{ amount: 1, answer: 'approved' }])
    await store.close()
    const path = join(data, 'chats', 'a', 'journal.ndjson')
    const journal = await readFile(path, 'utf8')
    await writeFile(path, journal.replace('"Send 1', '"Send 9'))
    const { code, said } = await run({ HANDRAIL_DATA: data }, '--config', await configured())
    expect(code).toBe(0)
    expect(said[0]).toBe('1 approval asked for, in 2 threads.')
    expect(said.at(-1)).toBe('1 thread could not be read to the end.')
  })

  test('wants a policy that it can read, a store, and words that it knows', async () => {
    const data = await directory()
    const env = { HANDRAIL_DATA: data }
    await expect(run(env)).rejects.toThrow(/has no chats/)
    await expect(run(env, '--config', 'no.such.mjs')).rejects.toThrow('--config: there is no file')
    await expect(run(env, '--since', 'long')).rejects.toThrow(/--since 90d/)
    await expect(run(env, '--sinse', '1d')).rejects.toThrow(/sinse/)
    const wrong = await configured(`export default { policy: [{ decision: 'alow' }] }`)
    await expect(run(env, '--config', wrong)).rejects.toThrow(/^policy\.0\.decision: write allow/)
    const config = readConfig(env)
    await expect(policy({ config, args: [], say() {}, progress() {} })).rejects.toThrow(
      /policy test/,
    )
  })
})

/** Every file with its size and the time of its last change. */
async function contentsOf(path: string): Promise<string[]> {
  const files = await readdir(path, { recursive: true, withFileTypes: true })
  const told = files
    .filter((one) => one.isFile())
    .map(async (one) => {
      const { size, mtimeMs } = await stat(join(one.parentPath, one.name))
      return `${one.parentPath}/${one.name} ${size} ${mtimeMs}`
    })
  return (await Promise.all(told)).sort()
}
