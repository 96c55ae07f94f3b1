/** What both servers stream: short words from an async generator, as a provider's client gives them.
 *  The event loop turns every `burst` words, as it does between two reads of a socket; with
 *  `burst` 0 the words come one by one, 5 ms apart. `wait` milliseconds pass before the first. */
export async function* words(count, burst, wait = 0) {
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
  for (let n = 1; n <= count; n++) {
    yield { type: 'text', text: texts[n % texts.length] }
    if (burst === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    else if (n % burst === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** What a message asks for, as the words of each message of the answer: `deltas <count> <burst>`
 *  for one, `messages <count> <deltas> <burst>` for so many. */
export function answers(asked) {
  const [task, ...numbers] = asked.split(' ')
  if (task === 'pause') return [pause()]
  const [count, deltas, burst] = (task === 'messages' ? numbers : [1, ...numbers]).map(Number)
  return Array.from({ length: count }, () => words(deltas, burst))
}

const texts = ['the ', 'quick ', 'brown ', 'fox ', 'jumps ', 'over ', 'a ', 'lazy ', 'dog, ']

/** One word, then nothing until the parent process says `release`, then another. */
export async function* pause() {
  yield { type: 'text', text: texts[1] }
  await released
  yield { type: 'text', text: texts[2] }
}

const released = new Promise((resolve) => {
  process.on('message', (ask) => ask === 'release' && resolve())
})
