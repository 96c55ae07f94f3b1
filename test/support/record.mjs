// The outside world, as a process of its own: a model provider and a remote agent that write down every request
// they get before they do anything else. What the server under test says about its calls is compared with this.
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const file = openSync(process.argv[2], 'a')

/** One line, on the disk before the request is answered. */
function record(line) {
  writeSync(file, `${JSON.stringify(line)}\n`)
  fsyncSync(file)
}

async function bodyOf(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

/** An AG-UI agent that says a few words. */
async function run({ threadId, runId }, response) {
  const message = { messageId: `m-${runId}` }
  const words = Array.from({ length: 5 }, (_, n) => ({ ...message, delta: `far ${n} ` }))
  const events = [
    { type: 'RUN_STARTED', threadId, runId },
    { type: 'TEXT_MESSAGE_START', ...message, role: 'assistant' },
    ...words.map((word) => ({ type: 'TEXT_MESSAGE_CONTENT', ...word })),
    { type: 'TEXT_MESSAGE_END', ...message },
    { type: 'RUN_FINISHED', threadId, runId },
  ]
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of events) {
    response.write(`data: ${JSON.stringify(event)}\n\n`)
    await sleep(4)
  }
  response.end()
}

const server = createServer(async (request, response) => {
  try {
    const body = await bodyOf(request)
    if (request.url === '/model') {
      record({ kind: 'model', ...body })
      response.writeHead(204).end()
    } else {
      const said = body.messages.findLast(({ role }) => role === 'user')
      const n = Number(/#(\d+)/.exec(JSON.stringify(said?.content ?? ''))?.[1] ?? 0)
      record({ kind: 'remote', effectId: body.runId, n })
      await run(body, response)
    }
  } catch {
    response.destroy() // the server under test died in the middle
  }
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`))
process.on('SIGTERM', () => {
  closeSync(file)
  process.exit(0)
})
