import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('./record.mjs', import.meta.url))

/** A request that the outside world got: a model call or a remote leg, for the message with this number. */
export type Received =
  | { kind: 'model'; n: number }
  | { kind: 'remote'; effectId: string; n: number }

export interface OutsideRecord {
  url: string
  path: string
  close(): Promise<void>
}

/** Starts the process that receives model calls and remote legs, and records each at `path`. */
export async function startRecord(path: string): Promise<OutsideRecord> {
  const child = spawn(process.execPath, [script, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const [port] = await once(child.stdout.setEncoding('utf8'), 'data')
  return {
    url: `http://127.0.0.1:${String(port).trim()}`,
    path,
    async close() {
      child.kill()
      await exited
    },
  }
}

export const receivedBy = ({ path }: Pick<OutsideRecord, 'path'>): Received[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Received)
