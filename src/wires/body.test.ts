import { expect, test } from 'vitest'
import { readJson } from './body.ts'

/** A POST whose body comes in chunks of these bytes, without a length. */
function chunked(chunks: Iterable<string>): Request {
  const source = chunks[Symbol.iterator]()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = source.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
  })
  const headers = { 'content-type': 'application/json' }
  const init = { method: 'POST', body, headers, duplex: 'half' }
  return new Request('http://localhost/', init as RequestInit)
}

test('a body in chunks of any size is read as it was sent', async () => {
  const text = JSON.stringify({ text: 'é'.repeat(200_000) })
  const cut = [
    text.slice(0, 1),
    text.slice(1, 70_000),
    text.slice(70_000, 150_000),
    text.slice(150_000),
  ]
  expect(await readJson(chunked(cut), { bytes: 1_000_000 })).toEqual(JSON.parse(text))
  const one = readJson(chunked(cut), { bytes: 400_000 })
  await expect(one).rejects.toMatchObject({ code: 'body_too_large' })
})

test('the server handles other work while it reads a body of small chunks', async () => {
  const text = JSON.stringify('x'.repeat(50_000))
  let turns = 0
  let reading = true
  const turn = () => {
    turns++
    if (reading) setImmediate(turn)
  }
  setImmediate(turn)
  expect(await readJson(chunked(text), { bytes: 1_000_000 })).toHaveLength(50_000)
  reading = false
  expect(turns).toBeGreaterThan(50)
})
