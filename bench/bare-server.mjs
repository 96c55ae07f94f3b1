// The least a server can do: `node:http`, one write per delta, waiting for `drain`.
import './meter.mjs'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { answers, words } from './source.mjs'

const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }
const messageId = `msg_${'0'.repeat(22)}`

const server = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const { user_message, messages } = JSON.parse(body)
  const [task, count, burst] = (user_message ?? messages.at(-1).content).split(' ')
  response.writeHead(200, headers)
  if (messages) return await agui(response, answers(messages.at(-1).content))
  if (task === 'hold') return response.write(': open\n\n')
  const write = task === 'coalesced' ? coalescing(response) : (text) => response.write(text)
  let n = 0
  for await (const { text: delta } of words(Number(count), Number(burst))) {
    const data = JSON.stringify({ message_id: messageId, delta })
    const more = write(`id: 5.1000001.${++n}\nevent: answer_delta\ndata: ${data}\n\n`)
    if (!more) await new Promise((resolve) => response.once('drain', resolve))
  }
  write('id: 9\nevent: interaction_complete\ndata: {"status":"COMPLETED"}\n\n')
  if (task === 'coalesced') await new Promise((resolve) => setImmediate(resolve))
  response.end()
})

/** The same words as AG-UI events. */
async function agui(response, all) {
  const event = (data) => response.write(`data: ${JSON.stringify(data)}\n\n`)
  event({ type: 'RUN_STARTED', threadId: 'bare', runId: 'bare' })
  for (const answer of all) {
    const id = randomUUID()
    event({ type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' })
    for await (const { text: delta } of answer) {
      const more = event({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta })
      if (!more) await new Promise((resolve) => response.once('drain', resolve))
    }
    event({ type: 'TEXT_MESSAGE_END', messageId: id })
  }
  event({ type: 'RUN_FINISHED', threadId: 'bare', runId: 'bare' })
  response.end()
}

/** One write per turn of the event loop, of all that came in it. */
function coalescing(response) {
  let waiting = ''
  return (text) => {
    if (waiting === '') {
      setImmediate(() => {
        response.write(waiting)
        waiting = ''
      })
    }
    waiting += text
    return !response.writableNeedDrain
  }
}

server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`listens on http://127.0.0.1:${server.address().port}\n`)
})
