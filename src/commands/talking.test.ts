import { expect, test } from 'vitest'
import { talking } from './talking.ts'

function heard(isTTY: boolean) {
  const clock = { time: 0, monotonic: () => clock.time }
  const texts: string[] = []
  const write = (text: string) => texts.push(text)
  return { clock, texts, ...talking({ write }, { write, isTTY }, clock) }
}

test('says nothing of progress to whoever waits for less than a second', () => {
  const { clock, texts, say, progress } = heard(false)
  progress('1 thread')
  clock.time = 900
  progress('2 threads')
  say('2 ok.')
  expect(texts).toEqual(['2 ok.\n'])
})

test('says how far it is every second, on a screen in a line that goes before what is said', () => {
  for (const isTTY of [false, true]) {
    const { clock, texts, say, progress } = heard(isTTY)
    for (clock.time = 0; clock.time <= 2_000; clock.time += 500) progress(`${clock.time} threads`)
    say('done')
    expect(texts).toEqual(
      isTTY
        ? ['\r\x1b[K1000 threads', '\r\x1b[K2000 threads', '\r\x1b[K', 'done\n']
        : ['1000 threads\n', '2000 threads\n', 'done\n'],
    )
  }
})
