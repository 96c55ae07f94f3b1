import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { bodySource, setBodySource } from './body-source.ts'

const post = () => new Request('http://localhost/', { method: 'POST', body: 'web' })

async function read(request: Request): Promise<Buffer[]> {
  const chunks: Buffer[] = []
  for await (const chunk of bodySource(request).chunks) chunks.push(Buffer.from(chunk))
  return chunks
}

test('chunks of a Node stream that arrived together are read as one', async () => {
  const stream = new IncomingMessage(new Socket())
  const request = post()
  setBodySource(request, stream)
  for (let n = 0; n < 10_000; n++) stream.push('x')
  stream.push(null)
  const chunks = await read(request)
  expect(chunks.length).toBeLessThan(10)
  expect(Buffer.concat(chunks).toString()).toBe('x'.repeat(10_000))
})

test('a reader that stops early leaves the Node stream open', async () => {
  const stream = new IncomingMessage(new Socket())
  const request = post()
  setBodySource(request, stream)
  stream.push('x')
  for await (const _ of bodySource(request).chunks) break
  expect(stream.destroyed).toBe(false)
})

test('the body of a request without a Node stream is read from its web stream', async () => {
  expect(Buffer.concat(await read(post())).toString()).toBe('web')
})
