// The peer as its documentation shows it on Node: its own listener, its in-memory runner, and an
// agent that streams the same words at the same pace as the model that Handrail is measured with.
import '../meter.mjs'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { AbstractAgent, EventType } from '@ag-ui/client'
import { CopilotRuntime } from '@copilotkit/runtime/v2'
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node'
import { Observable } from 'rxjs'
import { answers } from '../source.mjs'

// The runtime clones it for every run: no private members.
class Scripted extends AbstractAgent {
  run(input) {
    return new Observable((to) => {
      play(input, (event) => to.next(event)).then(
        () => to.complete(),
        (error) => to.error(error),
      )
    })
  }
}

async function play({ threadId, runId, messages }, emit) {
  emit({ type: EventType.RUN_STARTED, threadId, runId })
  for (const answer of answers(messages.at(-1).content)) {
    const messageId = randomUUID()
    emit({ type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' })
    for await (const { text } of answer)
      emit({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: text })
    emit({ type: EventType.TEXT_MESSAGE_END, messageId })
  }
  emit({ type: EventType.RUN_FINISHED, threadId, runId })
}

const runtime = new CopilotRuntime({ agents: { default: new Scripted() } })
const server = createServer(createCopilotNodeListener({ runtime, basePath: '/copilotkit' }))
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`listens on http://127.0.0.1:${server.address().port}\n`)
})
