import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { config } from '../crash/life.ts'
import { type ServerProcess, startServer } from '../support/server.ts'

/** One process, from its start to its end. */
export interface Life {
  id: string
  server: ServerProcess
  /** The crash point that it is to die at. */
  crash: string | undefined
  endedAt?: number
  /** We ended it, or asked it to end. */
  expected: boolean
  /** When it was stopped and went on, as often as that was. */
  frozen: { from: number; to: number }[]
}

/** Where lives are told of. */
export interface Register {
  lives: Map<string, Life>
  /** Which lives began a leg, and when: one that slept may, before the store tells it that it is late. */
  legs: Map<string, { life: Life; at: number }[]>
  problems: string[]
  /** How often each crash point was died at. */
  died: Map<string, number>
}

/** The life that drove a leg: the last that had begun it when its start was written. */
export const driverOf = ({ legs }: Register, legId: string, startedAt: number): Life | undefined =>
  legs
    .get(legId)
    ?.filter(({ at }) => at <= startedAt)
    .sort((a, b) => b.at - a.at)[0]?.life

/** One place in the row of servers: when a process ends, another comes. */
export class Seat {
  readonly name: string
  readonly #env: Record<string, string>
  readonly #directory: string
  readonly #register: Register
  life: Life | undefined
  /** Somebody is doing something to it. */
  busy = false
  #closed = false
  #beginning: Promise<void> | undefined
  #count = 0

  constructor(name: string, directory: string, env: Record<string, string>, register: Register) {
    this.name = name
    this.#directory = directory
    this.#env = { HANDRAIL_CONFIG: config, HANDRAIL_SPOOL: `${directory}/spool-${name}`, ...env }
    this.#register = register
  }

  get url(): string | undefined {
    return this.life?.server.url
  }

  /** Resolves when it is there; `crash` is for a process that comes because of this. */
  async begin(crash?: string): Promise<void> {
    if (this.life) return
    this.#beginning ??= this.#begin(crash).finally(() => {
      this.#beginning = undefined
    })
    await this.#beginning
  }

  /** Tries until it listens: it cannot while its store is away. */
  async #begin(crash?: string): Promise<void> {
    for (let armed = crash; !this.#closed; armed = undefined) {
      const id = `${this.name}.${++this.#count}`
      const env = { ...this.#env, LOG_LEVEL: 'info', CRASH_LIFE: id }
      try {
        const more = armed === undefined ? env : { ...env, HANDRAIL_CRASH: armed }
        this.#live({ id, crash: armed, ...(await startServer(more).then(withServer)) })
        return
      } catch (error) {
        this.#note(id, `${(error as Error).message}\n`)
        await sleep(200)
      }
    }
  }

  async kill(): Promise<void> {
    await this.#beginning
    const { life } = this
    if (!life) return
    life.expected = true
    await life.server.kill()
  }

  /** Asks it to stop, as a rollout does; how long that took. */
  async stop(): Promise<number> {
    await this.#beginning
    const { life } = this
    if (!life) return 0
    const since = Date.now()
    life.expected = true
    const late = new AbortController()
    const patience = sleep(30_000, undefined, late).then(
      () => life.server.kill(),
      () => {},
    )
    await life.server.stop()
    late.abort()
    await patience
    const { code, signal } = await life.server.exited
    if (code !== 0 && life.crash === undefined)
      this.#problem(life, `did not stop by itself (${signal ?? code})`)
    return Date.now() - since
  }

  async freeze(ms: number): Promise<void> {
    const { life } = this
    if (!life || life.endedAt !== undefined) return
    const spell = { from: Date.now(), to: Number.POSITIVE_INFINITY }
    life.frozen.push(spell)
    life.server.child.kill('SIGSTOP')
    await sleep(ms)
    spell.to = Date.now()
    life.server.child.kill('SIGCONT')
  }

  /** Nobody comes any more. */
  async close(): Promise<void> {
    this.#closed = true
    await this.kill()
  }

  #live(life: Life): void {
    this.life = life
    this.#register.lives.set(life.id, life)
    let rest = life.server.output()
    const read = (chunk: string) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop()!
      for (const line of lines) this.#hear(life, line)
    }
    read('')
    life.server.child.stdout!.on('data', (chunk) => read(String(chunk)))
    life.server.child.stderr!.on('data', (chunk) => this.#note(life.id, String(chunk)))
    void life.server.exited.then(({ code, signal }) => {
      life.endedAt = Date.now()
      this.life = undefined
      if (life.expected || this.#closed) return
      const { died } = this.#register
      const point = life.crash?.replace(/:.*/, '')
      if (point === undefined || signal !== 'SIGKILL')
        this.#problem(life, `ended by itself (${signal ?? code})`)
      else died.set(point, (died.get(point) ?? 0) + 1)
      if (!this.busy) void this.begin()
    })
  }

  #hear(life: Life, line: string): void {
    this.#note(life.id, `${line}\n`)
    const [, at, leg = ''] = /"time":(\d+).*"legId":"(\w+)".*"leg begins"/.exec(line) ?? []
    const { legs } = this.#register
    if (leg !== '') legs.set(leg, [...(legs.get(leg) ?? []), { life, at: Number(at) }])
    if (line.includes('"level":50')) this.#problem(life, line)
  }

  #problem(life: Life, problem: string): void {
    this.#register.problems.push(`server ${life.id}: ${problem}`)
  }

  #note(id: string, text: string): void {
    appendFileSync(`${this.#directory}/server-${id}.log`, text)
  }
}

const withServer = (server: ServerProcess) => ({ server, expected: false, frozen: [] })
