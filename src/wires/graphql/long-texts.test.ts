import { expect, test } from 'vitest'
import { LongTexts } from './long-texts.ts'
import { multipart, partTexts } from './parts.ts'

/** A long text of 100 steps that counts how often it was begun, and the steps that were made of the last time. */
function longText() {
  const made = { times: 0, steps: 0 }
  async function* steps() {
    made.times++
    for (made.steps = 0; made.steps < 100; made.steps++) yield `"ä${made.steps}",`
  }
  return { made, steps }
}

test('a part with a long text is sent while the text is made, and its header has the right length', async () => {
  const { made, steps } = longText()
  const long = new LongTexts()
  const json = JSON.stringify({ state: long.add(steps) })
  const texts: string[] = []
  for await (const text of partTexts(multipart, json, long)) {
    texts.push(text)
    if (texts.length > 2 && made.times === 2) expect(made.steps).toBeLessThanOrEqual(texts.length)
  }
  const [header = '', ...body] = texts
  expect(body.length).toBeGreaterThan(100)
  const content = body.slice(0, -1).join('')
  expect(JSON.parse(content).state).toContain('"ä99",')
  expect(header).toContain(`Content-Length: ${Buffer.byteLength(content)}\r\n`)
  expect(made.times).toBe(2)
})

test('a long text that a document selects several times is made once to count its bytes', async () => {
  const { made, steps } = longText()
  const long = new LongTexts()
  const marker = long.add(steps)
  const json = JSON.stringify(Array.from({ length: 17 }, () => marker))
  const bytes = await long.byteLength(json)
  expect(made.times).toBe(1)
  let sent = 0
  for await (const text of long.filled(json)) sent += Buffer.byteLength(text)
  expect(bytes).toBe(sent)
})
