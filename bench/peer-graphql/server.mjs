// The last peer that speaks GraphQL, as its documentation shows it on Node, with an adapter that
// streams the same words at the same pace as the model that Handrail is measured with.
import '../meter.mjs'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { CopilotRuntime, copilotRuntimeNodeHttpEndpoint } from '@copilotkit/runtime'
import { answers } from '../source.mjs'

const serviceAdapter = {
  async process({ eventSource, messages, threadId }) {
    await eventSource.stream(async (stream) => {
      for (const answer of answers(messages.at(-1).content)) {
        const messageId = randomUUID()
        stream.sendTextMessageStart({ messageId })
        for await (const { text } of answer)
          stream.sendTextMessageContent({ messageId, content: text })
        stream.sendTextMessageEnd({ messageId })
      }
      stream.complete()
    })
    return { threadId: threadId ?? randomUUID() }
  },
}

// One runtime for all requests: made for each, as the examples do, it only costs more.
const endpoint = '/copilotkit'
const runtime = new CopilotRuntime()
const server = createServer(copilotRuntimeNodeHttpEndpoint({ runtime, serviceAdapter, endpoint }))
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`listens on http://127.0.0.1:${server.address().port}\n`)
})
