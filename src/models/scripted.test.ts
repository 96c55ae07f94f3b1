import { expect, test } from 'vitest'
import { userText } from '../core/messages.ts'
import type { Model, ModelEvent } from '../core/model.ts'
import { call, scriptedModel, text } from './scripted.ts'

const request = { system: [], messages: [userText('m1', 'hi')], tools: [] }

async function play(model: Model, signal = new AbortController().signal) {
  const events: ModelEvent[] = []
  for await (const event of model.stream(request, signal)) events.push(event)
  return events
}

test('plays one step per call and keeps the requests', async () => {
  const model = scriptedModel([[text('one')], [text('two'), new Error('broke')]])
  expect(await play(model)).toEqual([text('one')])
  await expect(play(model)).rejects.toThrow('broke')
  await expect(play(model)).rejects.toThrow('The script has no step 2.')
  expect(model.requests).toEqual([request, request, request])
})

test('asks a function what to play', async () => {
  const model = scriptedModel(async function* (asked, n) {
    yield text(`${n}: ${asked.messages.length}`)
    yield call('call_1', 'echo', { text: 'hi' })
  })
  await play(model)
  expect(await play(model)).toEqual([
    text('1: 1'),
    { type: 'call', callId: 'call_1', name: 'echo', input: '{"text":"hi"}' },
  ])
})

test('waits until the signal fires', async () => {
  const controller = new AbortController()
  const playing = play(scriptedModel([[text('one'), 'wait', text('never')]]), controller.signal)
  setTimeout(() => controller.abort(new Error('cancelled')), 5)
  await expect(playing).rejects.toThrow('cancelled')
})
