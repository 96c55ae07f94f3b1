import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type ServerProcess, startServer } from '../support/server.ts'

export const config = fileURLToPath(new URL('./handrail.config.mjs', import.meta.url))

export interface Place {
  data: string
  outside: string
}

/** A directory for a server's data, and beside it the outside world. */
export const placeIn = (path: string): Place => ({
  data: `${path}/data`,
  outside: `${path}/outside`,
})

const environment = ({ data, outside }: Place): Record<string, string> => ({
  HANDRAIL_CONFIG: config,
  HANDRAIL_DATA: data,
  HANDRAIL_SPOOL: `${data}-spool`,
  CRASH_OUTSIDE: outside,
})

/** One life of the server, to be ended at `crash` (`point:occurrence`) by its own hand. */
export async function begin(
  place: Place,
  env: Record<string, string> = {},
  crash?: string,
): Promise<ServerProcess> {
  const armed = { ...environment(place), ...env }
  if (crash !== undefined) armed.HANDRAIL_CRASH = crash
  return await startServer(armed)
}

/** The same; undefined when it died of its crash point before it could listen. */
export async function tryBegin(place: Place, env: Record<string, string>, crash?: string) {
  try {
    return await begin(place, env, crash)
  } catch (error) {
    if (crash !== undefined && /\(SIGKILL\)/.test(String(error))) return undefined
    throw error
  }
}

/** SIGTERM, and SIGKILL to a server that does not listen to it; whether it stopped by itself. */
export async function stopInTime(server: ServerProcess): Promise<boolean> {
  const stopped = server.stop().then(() => true)
  const over = new AbortController()
  const late = sleep(20_000, false, { signal: over.signal }).catch(() => false)
  const inTime = await Promise.race([stopped, late])
  over.abort()
  if (!inTime) await server.kill()
  return inTime && (await server.exited).code === 0
}
