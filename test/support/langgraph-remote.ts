import type { ServerResponse } from 'node:http'
import { type Asked, type Remote, remote } from '../remote/support.ts'

/** A remote with enough of the API of LangGraph Platform to start a run, to look for it and to join it. */
export interface LangGraphRemote extends Remote {
  /** Runs that were started, with the id that their request has in its metadata. */
  runs: { run_id: string; status: string; metadata: unknown }[]
  /** Paths of requests of this kind, oldest first. */
  requests(kind: LangGraphRequest): string[]
}

export type LangGraphRequest = 'thread' | 'start' | 'list' | 'get' | 'join' | 'state' | 'other'

const kindOf = ({ method, path }: Pick<Asked, 'method' | 'path'>): LangGraphRequest => {
  if (method === 'POST' && path.endsWith('/threads')) return 'thread'
  if (method === 'POST' && path.endsWith('/runs/stream')) return 'start'
  if (/\/runs\?/.test(path)) return 'list'
  if (/\/runs\/[^/]+\/stream/.test(path)) return 'join'
  if (/\/runs\/[^/]+$/.test(path)) return 'get'
  return path.endsWith('/state') ? 'state' : 'other'
}

export interface LangGraphRemoteOptions {
  /** The stream of a started run stays open and silent. Otherwise it ends at once, and the run goes on. */
  isSilent?: boolean
  /** May answer a request before the remote does: then it returns true. */
  intercept?(kind: LangGraphRequest, response: ServerResponse, far: LangGraphRemote): boolean
}

export async function langGraphRemote(
  options: LangGraphRemoteOptions = {},
): Promise<LangGraphRemote> {
  const { isSilent = false, intercept } = options
  const runs: LangGraphRemote['runs'] = []
  const messages = [{ type: 'ai', id: 'a1', content: 'The graph is done.' }]
  const server = await remote((asked, response) => {
    const kind = kindOf(asked)
    const json = (value: unknown) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    }
    const stream = (headers = {}) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
      response.flushHeaders()
    }
    const started = () => {
      const run_id = `00000000-0000-4000-8000-00000000000${runs.length + 1}`
      runs.push({ run_id, status: 'running', metadata: asked.body.metadata })
      stream({ 'content-location': `${asked.path.replace('/stream', '')}/${run_id}` })
      if (!isSilent) response.end()
    }
    if (intercept?.(kind, response, far)) return
    if (kind === 'thread') json({ thread_id: asked.body.thread_id, metadata: {}, values: {} })
    else if (kind === 'start') started()
    else if (kind === 'list') json(runs)
    else if (kind === 'get') json(runs.find(({ run_id }) => asked.path.endsWith(run_id)))
    else if (kind === 'join') {
      for (const run of runs) run.status = 'success'
      stream()
      response.end(`event: values\ndata: ${JSON.stringify({ messages })}\n\n`)
    } else if (kind === 'state')
      json({ values: { messages }, next: [], tasks: [], checkpoint: { checkpoint_id: 'c' } })
    else json({})
  })
  const far: LangGraphRemote = Object.assign(server, {
    runs,
    requests: (kind: LangGraphRequest) =>
      server.asked.filter((asked) => kindOf(asked) === kind).map(({ path }) => path),
  })
  return far
}
