import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chatsClient } from '../../support/chats.ts'
import { type OneOfMany, type ServersOptions, startServers } from '../../support/servers.ts'

const config = fileURLToPath(new URL('../../support/servers.config.mjs', import.meta.url))

/** What a server did, as it wrote it down outside of itself. */
export interface Mark {
  server: string
  what: 'pay' | 'model' | 'told' | 'secret'
  about: string
}

export type Member = OneOfMany & { chats: ReturnType<typeof chatsClient> }

/** Servers whose agent pays after approval; who did what is read with `marks`. */
export async function openCluster(options: ServersOptions = {}) {
  const all = await startServers({
    ...options,
    env: (place) => ({
      HANDRAIL_CONFIG: config,
      HANDRAIL_LEASE_MS: '3000',
      HANDRAIL_GRAPHQL_GRACE_MS: '300',
      TEST_SERVER: place.name,
      TEST_MARKS: join(place.path, 'marks'),
      ...options.env?.(place),
    }),
  })
  const members = all.servers.map((one): Member => ({ ...one, chats: chatsClient(one.url) }))
  const marks = (what?: Mark['what'], about?: string): Mark[] => {
    const lines = read(join(all.path, 'marks')).split('\n').filter(Boolean)
    const every = lines.map((line) => JSON.parse(line) as Mark)
    return every.filter(
      (one) => (what ?? one.what) === one.what && (about ?? one.about) === one.about,
    )
  }
  return { ...all, members: members as [Member, Member, Member], marks }
}

export type TestCluster = Awaited<ReturnType<typeof openCluster>>

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // nothing has happened yet
  }
}

export const count = (to: number): string =>
  Array.from({ length: to }, (_, n) => `${n + 1} `).join('')

/** A payment as each wire shows it, when it is done. */
export const paid = (to: string) => {
  const input = JSON.stringify({ to })
  return {
    agui: [
      `user: pay ${to}`,
      `assistant: I pay. pay(${input})`,
      `tool: paid ${to}`,
      `assistant: ${count(60)}`,
    ],
    graphql: [
      `user: pay ${to}`,
      'assistant: I pay.',
      `call pay(${input})`,
      `result paid ${to}`,
      `assistant: ${count(60)}`,
    ],
  }
}

/** Answers an AG-UI interrupt. */
export const yes = (interruptId: string) => ({
  resume: [{ interruptId, status: 'resolved' as const, payload: { approved: true } }],
})

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Waits for something that the test cannot be told of. */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await pause(10)
}
