import { createHash } from 'node:crypto'
import { unframed } from '../http.ts'

const pages = new Map<string, Promise<{ html: string; policy: string }>>()

/**
 * GraphiQL for an endpoint in one page that loads nothing, with its content security policy. It has 9 MB, so it is read from disk when it is first
 * requested, and then kept. The endpoints are those of the configuration.
 */
export async function graphiqlPage(endpoint: string): Promise<{ html: string; policy: string }> {
  let page = pages.get(endpoint)
  if (!page) {
    page = render(endpoint).then((html) => ({ html, policy: policyFor(html) }))
    pages.set(endpoint, page)
    page.catch(() => pages.delete(endpoint))
  }
  return await page
}

/** Allows the page its own script, by its digest, and requests to this server. */
function policyFor(html: string): string {
  const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, script = '']) => {
    return `'sha256-${createHash('sha256').update(script).digest('base64')}'`
  })
  return [
    "default-src 'none'",
    `script-src ${scripts.join(' ')}`,
    'worker-src blob:',
    "style-src 'unsafe-inline'", // its editor writes styles
    'img-src data:',
    'font-src data:',
    "connect-src 'self'",
    unframed,
  ].join('; ')
}

async function render(endpoint: string): Promise<string> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql')
  const page = renderGraphiQL({
    endpoint: encodeURI(endpoint), // it is written into a script
    title: 'Handrail GraphiQL',
    favicon: mark,
    logo: ' ', // else it is another product's
    defaultTabs: [{ query: chat }, { query: agents }],
    inputValueDeprecation: true,
  })
  return page.trimStart() // without a doctype at its start a page is read as of old
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
