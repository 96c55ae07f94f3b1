// Prints what the real client sends: the load driver sends the same, with messages of its own.
import { CopilotRuntimeClient } from '@copilotkit/runtime-client-gql'

globalThis.fetch = async (_, { headers, body }) => {
  process.stdout.write(JSON.stringify({ headers, body: JSON.parse(body) }))
  process.exit()
}
const client = new CopilotRuntimeClient({ url: 'http://127.0.0.1/' })
const data = { frontend: { actions: [] }, messages: [], metadata: { requestType: 'Chat' } }
await client.generateCopilotResponse({ data, properties: {} }).toPromise()
