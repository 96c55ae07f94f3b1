import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { fileStore } from '../../src/stores/file/store.ts'
import { temporaryDirectory } from '../support/server.ts'
import { checkThreads, readThreads } from './checker.ts'
import { randomFrom } from './random.ts'

/** Always the same in CI; `HANDRAIL_SEED=7 npm run test:crash` looks elsewhere. */
const seed = Number(process.env.HANDRAIL_SEED ?? '2026') || Date.now() % 1_000_000
const kills = Math.min(100, Number(process.env.HANDRAIL_KILLS ?? 100))
const workers = 2
/** Milliseconds in which a life has died or done all there is to do. */
const patience = 60_000

const child = fileURLToPath(new URL('./budget.child.mjs', import.meta.url))
const agents = ['steps', 'branches', 'nameless']

/** Points around a reservation and around the question that it leads to. */
const points = [
  ...['effect.intended', 'effect.intended', 'effect.intended', 'effect.intended'],
  ...['before effect.intended', 'effect.ran', 'before effect.done', 'effect.done'],
  ...['before ask.raised', 'ask.raised', 'before run.waiting', 'run.waiting'],
  ...['before ask.answered', 'governor.set', 'run.queued', 'leg.claimed'],
]

/** How often a life comes by a point at least. */
const timesOf = (point: string) => (/effect/.test(point) ? 4 : 1)

const died = new Map<string, number>()
afterAll(() => {
  const hits = [...died].sort().map(([point, times]) => `${point} ${times}`)
  console.log(`seed ${seed}: ${hits.join(', ')}`)
})

/** A model elsewhere: how often it was asked, by chat, is the outside's own record. */
async function counter() {
  const asked = new Map<string, number>()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const chat = body.split(' ')[0]!
    asked.set(chat, (asked.get(chat) ?? 0) + 1)
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { asked, url, close }
}

/** One life: whether it was killed at its point, and not by us. */
async function life(given: string[]): Promise<boolean> {
  const one = spawn(process.execPath, [child, ...given], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  one.stderr.on('data', (chunk) => {
    said += chunk
  })
  const late = setTimeout(() => one.kill('SIGTERM'), patience)
  const [code, signal] = await once(one, 'exit')
  clearTimeout(late)
  if (code !== 0 && signal !== 'SIGKILL') throw new Error(`stuck or broken (${signal}): ${said}`)
  return signal === 'SIGKILL'
}

test.concurrent.each(Array.from({ length: workers }, (_, n) => n))(
  `killed around reservations, never one call too many and never a stuck run (seed ${seed}, worker %i)`,
  async (worker) => {
    const random = randomFrom(seed * 10 + worker)
    const { path, remove } = await temporaryDirectory()
    const { asked, url, close } = await counter()
    let lives = 0
    const chat = () => `chat${worker}-${lives}`
    for (let n = 0; n < kills / workers; ) {
      const left = chat()
      lives++
      expect(lives, 'lives come by their points').toBeLessThan(kills)
      const point = random.pick(points)
      const crash = `${point}:${1 + random.below(timesOf(point))}`
      if (!(await life([path, url, crash, agents[lives % 3]!, left, chat()]))) continue
      died.set(point, (died.get(point) ?? 0) + 1)
      n++
    }
    expect(await life([path, url, 'never:1', '', chat()])).toBe(false)
    close()

    const store = await fileStore({ directory: path, clock: systemClock })
    const threads = await readThreads(store)
    await store.close()
    await writeFile(`${path}/outside`, '')
    const told = {
      ...{ accepted: new Map(), answers: new Map() },
      ...{ deleted: new Set<string>(), numbers: new Map() },
    }
    const problems = checkThreads(threads, `${path}/outside`, told)
    for (const { threadId, entries, state } of threads) {
      const reserved = entries.filter(({ kind }) => kind === 'effect.intended').length
      const made = asked.get(threadId) ?? 0
      if (made > reserved) problems.push(`${threadId}: ${made} calls, ${reserved} reserved`)
      const done = [...state.effects.values()].filter((one) => one.state === 'done').length
      if (done !== 6) problems.push(`${threadId}: ${done} of 6 questions were answered`)
    }
    expect(threads.length).toBeGreaterThan(lives / 2)
    expect(problems, `data is kept in ${path}`).toEqual([])
    await remove()
  },
)
