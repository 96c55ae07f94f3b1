import { attacks, attempt, sender } from './attacks.ts'

/**
 * A tenant that sends the most expensive requests, `atOnce` at a time, for `seconds`. It runs in its own
 * process, so that the cost of sending is not measured as cost of the server.
 */
const { url, key, seconds, atOnce } = JSON.parse(process.env.HOSTILE!) as {
  url: string
  key: string
  seconds: number
  atOnce: number
}

const until = Date.now() + seconds * 1_000
const send = sender(url, key)
const outcomes = new Map<string, number>()

let next = 0
const worker = async () => {
  while (Date.now() < until) {
    const attack = attacks[next++ % attacks.length]!
    const began = Date.now()
    try {
      count(`${attack.name}: ${await attempt(attack, send)}`)
    } catch (error) {
      count(`${attack.name}: ${(error as Error).name}`)
      if (Date.now() - began < 100) await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)

await Promise.all(Array.from({ length: atOnce }, worker))
process.send!([...outcomes])
process.disconnect()
