// An MCP server for tests, over stdio, or over HTTP on this machine with `http` as its argument.
// CONTROL names a file of JSON: `amount` is a part of a schema, `done` a file that records each `pay`.
import { randomUUID } from 'node:crypto'
import { appendFileSync, readFileSync, watchFile } from 'node:fs'
import { createServer } from 'node:http'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CallToolRequestSchema,
  isInitializeRequest,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'

const control = process.env.CONTROL
const settings = () => JSON.parse(readFileSync(control, 'utf8'))
const sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(new Error('cancelled'))
    })
  })
const said = (text) => ({ content: [{ type: 'text', text: String(text) }] })
const object = (properties, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

function open() {
  const capabilities = { tools: { listChanged: true } }
  const server = new Server({ name: 'stage', version: '1' }, { capabilities })
  let note = 'nothing'

  const tools = {
    pay: {
      schema: () => object({ to: { type: 'string' }, amount: settings().amount }),
      run({ to, amount }) {
        appendFileSync(settings().done, `${to} ${amount}\n`)
        return said(`paid ${amount} to ${to}`)
      },
    },
    // Pays, and does not live to tell.
    pay_and_die: {
      schema: () => object({ to: { type: 'string' } }),
      async run({ to }) {
        appendFileSync(settings().done, `${to}\n`)
        process.kill(process.pid, 'SIGKILL')
        await sleep(10_000)
      },
    },
    note: {
      schema: () => object({ text: { type: 'string' } }),
      run({ text }) {
        note = text
        return said('noted')
      },
    },
    recall: { schema: () => object({}), hints: { readOnlyHint: true }, run: () => said(note) },
    slow: {
      schema: () => object({ ms: { type: 'integer' } }),
      hints: { readOnlyHint: true },
      async run({ ms }, { sendNotification, signal, _meta }) {
        for (let progress = 1; progress <= 4; progress++) {
          const params = { progressToken: _meta?.progressToken, progress, total: 4 }
          const message = `part ${progress}`
          await sendNotification({
            method: 'notifications/progress',
            params: { ...params, message },
          })
          await sleep(ms / 4, signal).catch(() => appendFileSync(settings().done, 'cancelled\n'))
        }
        return said('done')
      },
    },
    hang: {
      schema: () => object({}),
      run() {
        for (;;);
      },
    },
    noise: {
      schema: () => object({}),
      run() {
        process.stdout.write('this is no message\n{"nor": "this"}\n\n')
        return said('quiet again')
      },
    },
    huge: {
      schema: () => object({ length: { type: 'integer' } }),
      run: ({ length }) => said('x'.repeat(length)),
    },
    fail: {
      schema: () => object({}),
      run: () => ({ ...said('The till is empty.'), isError: true }),
    },
    picture: {
      schema: () => object({}),
      run: () => ({
        content: [
          { type: 'text', text: 'Here it is:' },
          { type: 'image', mimeType: 'image/png', data: Buffer.alloc(2_048).toString('base64') },
        ],
      }),
    },
    ask: {
      schema: () => object({ question: { type: 'string' } }),
      async run({ question }) {
        const requestedSchema = {
          type: 'object',
          properties: { colour: { type: 'string', enum: ['red', 'blue'] } },
          required: ['colour'],
        }
        const answer = await server.elicitInput(
          { message: question, requestedSchema },
          { timeout: 600_000 },
        )
        appendFileSync(settings().done, `${answer.action}\n`)
        return said(JSON.stringify(answer))
      },
    },
  }

  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.entries(tools).map(([name, { schema, hints }]) => ({
      name,
      description: `The tool ${name}`,
      inputSchema: schema(),
      ...(hints && { annotations: hints }),
    })),
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const tool = tools[params.name]
    return tool ? await tool.run(params.arguments ?? {}, extra) : { ...said('?'), isError: true }
  })
  watchFile(control, { interval: 100 }, () => void server.sendToolListChanged().catch(() => {}))
  return server
}

if (process.argv[2] === 'http') {
  const sessions = new Map()
  createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined
    let transport = sessions.get(request.headers['mcp-session-id'])
    if (!transport && isInitializeRequest(body)) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, transport),
      })
      await open().connect(transport)
    }
    if (transport) await transport.handleRequest(request, response, body)
    else response.writeHead(404).end('{}')
  }).listen(Number(process.argv[3] ?? 0), '127.0.0.1', function listening() {
    process.stdout.write(`port ${this.address().port}\n`)
  })
} else {
  await open().connect(new StdioServerTransport())
  process.stdin.on('end', () => process.exit()) // whoever started us is gone
}
