import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { lazily } from '../../lib/lazily.ts'
import { unframed } from '../http.ts'

export interface GraphiqlPage {
  html: Uint8Array<ArrayBuffer>
  /** The content security policy of the page. */
  policy: string
}

const pages = new Map<string, () => Promise<GraphiqlPage>>()

/**
 * GraphiQL for an endpoint in one page that loads nothing. It has 9 MB, so it is rendered when it is first requested,
 * and then kept. The endpoints are those of the configuration.
 */
export async function graphiqlPage(endpoint: string): Promise<GraphiqlPage> {
  const page = pages.get(endpoint) ?? lazily(() => render(endpoint))
  pages.set(endpoint, page)
  return await page()
}

/** Allows the page its own scripts, by their digests, and requests to this server. */
function policyFor(digests: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src ${digests.map((digest) => `'sha256-${digest}'`).join(' ')}`,
    'worker-src blob:',
    "style-src 'unsafe-inline'", // its editor writes styles
    'img-src data:',
    'font-src data:',
    "connect-src 'self'",
    unframed,
  ].join('; ')
}

/** Loading and rendering 9 MB takes more than 100 ms, so a thread of its own does it. */
const rendering = `
const { createHash } = require('node:crypto')
const { parentPort, workerData } = require('node:worker_threads')
const { renderGraphiQL } = require(workerData.module)
const page = renderGraphiQL(workerData.options).trimStart() // the doctype must come first: without it, browsers use quirks mode
const scripts = [...page.matchAll(/<script>([\\s\\S]*?)<\\/script>/g)]
const digests = scripts.map(([, script]) => createHash('sha256').update(script).digest('base64'))
const html = new TextEncoder().encode(page)
parentPort.postMessage({ html, digests }, [html.buffer])
`

interface Rendered {
  html: Uint8Array<ArrayBuffer>
  digests: string[]
}

async function render(endpoint: string): Promise<GraphiqlPage> {
  const options = {
    endpoint: encodeURI(endpoint), // it is written into a script
    title: 'Handrail GraphiQL',
    favicon: mark,
    logo: ' ', // else it is another product's
    defaultTabs: [{ query: chat }, { query: agents }],
    inputValueDeprecation: true,
  }
  const module = createRequire(import.meta.url).resolve('@graphql-yoga/render-graphiql')
  const workerData = { module, options }
  const worker = new Worker(rendering, { eval: true, execArgv: [], workerData })
  worker.unref()
  const [{ html, digests }] = (await once(worker, 'message')) as [Rendered]
  return { html, policy: policyFor(digests) }
}

/** A rail on two posts. */
const mark = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#475569" stroke-width="2.5" stroke-linecap="round"><path d="M3 12 21 6M7 11v9M17 8v12"/></svg>',
)}`

const chat = `# Runs an agent. The answer grows as it speaks;
# without @stream and @defer it comes at the end.
mutation Chat {
  generateCopilotResponse(
    data: {
      metadata: { requestType: Chat }
      frontend: { actions: [] }
      messages: [
        {
          id: "message-1"
          createdAt: "2026-01-01T00:00:00.000Z"
          textMessage: { role: user, content: "What can you do?" }
        }
      ]
    }
  ) {
    threadId
    messages @stream {
      __typename
      id
      ... on TextMessageOutput {
        content @stream
      }
      ... on ActionExecutionMessageOutput {
        name
        arguments @stream
      }
      ... on ResultMessageOutput {
        actionName
        result
      }
    }
    metaEvents @stream {
      name
      ... on LangGraphInterruptEvent {
        value
      }
    }
    ... @defer {
      status {
        ... on BaseResponseStatus {
          code
        }
        ... on FailedResponseStatus {
          reason
          details
        }
      }
    }
  }
}
`

const agents = `# The agents of this server.
query Agents {
  availableAgents {
    agents {
      id
      name
      description
    }
  }
}
`
