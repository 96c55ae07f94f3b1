import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type ServerProcess, startServer } from '../../support/server.ts'

// Not beside this file: there, `zod` would be another one, a client's.
const config = fileURLToPath(new URL('../../crash/soak.config.mjs', import.meta.url))

/** The outside world's own record of what was done there. */
export interface Mark {
  tool: string
  what: string
  effectId: string
}

/** A server with one address and one directory for all of its lives. */
export class Host {
  readonly #path: string
  readonly #port: number
  #server!: ServerProcess
  #up: Promise<void> = Promise.resolve()
  /** Counts from 1; odd while it is up. */
  epoch = 0
  /** What the lives that are over have logged as errors. */
  readonly errors: string[] = []

  constructor(path: string, port: number) {
    this.#path = path
    this.#port = port
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Resolves as soon as somebody listens. */
  ready(): Promise<void> {
    return this.#up
  }

  async begin(): Promise<void> {
    this.#server = await startServer({
      ...{ PORT: String(this.#port), HANDRAIL_CONFIG: config, HANDRAIL_DRAIN_MS: '0' },
      ...{ HANDRAIL_DATA: `${this.#path}/data`, HANDRAIL_SPOOL: `${this.#path}/spool` },
      SOAK_OUTSIDE: `${this.#path}/outside`,
    })
    this.epoch++
  }

  /** SIGKILL, a moment of nothing, and a new life. */
  async die(pause: number): Promise<void> {
    this.epoch++ // first: no client can notice before
    this.#up = (async () => {
      await this.#server.kill()
      this.#listen()
      await sleep(pause)
      await this.begin()
    })()
    await this.#up
  }

  async end(): Promise<void> {
    await this.#server?.kill()
    this.#listen()
  }

  marks(): Mark[] {
    let text = ''
    try {
      text = readFileSync(`${this.#path}/outside`, 'utf8')
    } catch {} // nothing was done yet
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Mark)
  }

  #listen(): void {
    this.errors.push(...(this.#server?.output().match(/^.*"level":[56]0.*$/gm) ?? []))
  }
}

/** Not one that the system gives to connections: clients that call in vain could take it. */
export const portFor = (n: number): number => 10_000 + ((process.pid * 2 + n) % 20_000)
