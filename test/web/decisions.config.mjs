// Tools that ask in every way there is, for the stories about decisions.
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool, OutcomeUnknown } from '../../dist/index.js'

const { BROWSER_STAGE = '' } = process.env
const sign = (text) => appendFileSync(`${BROWSER_STAGE}/guests`, `${text}\n`)

const payment = z.strictObject({
  to: z.string().min(1).describe('Whom it goes to'),
  amount: z.number().int().min(1).max(1_000),
  note: z.string().optional(),
})

const pay = defineTool({
  name: 'pay',
  description: 'Sends money.',
  schema: payment,
  access: 'write',
  describe: ({ to, amount }) => `Pay ${amount} to ${to}`,
  target: ({ to }) => `account of ${to}`,
  preview: async ({ amount }) => ({ kind: 'diff', before: '100\n', after: `${100 - amount}\n` }),
  async run({ to, amount, note }) {
    sign(`${to} ${amount}${note === undefined ? '' : ` ${note}`}`)
    return `${amount} sent to ${to}`
  },
})

const wipe = defineTool({
  name: 'wipe',
  description: 'Wipes a disk.',
  schema: z.strictObject({ disk: z.string() }),
  access: 'execute',
  describe: ({ disk }) => `Wipe ${disk}`,
  run: async ({ disk }) => `${disk} is empty`,
})

const hurry = defineTool({
  name: 'hurry',
  description: 'Must be decided at once.',
  schema: z.strictObject({}),
  access: 'write',
  describe: () => 'Catch the train',
  run: async () => 'on it',
})

const fragile = defineTool({
  name: 'fragile',
  timeout: 1_000,
  description: 'Its line goes dead in the middle.',
  schema: z.strictObject({ load: z.string() }),
  access: 'read',
  describe: ({ load }) => `Carry ${load}`,
  risk: ({ load }) => ({ level: load === 'dynamite' ? 'high' : 'low', why: 'It depends.' }),
  // It can tell once the test lets it.
  check: async ({ load }) =>
    existsSync(`${BROWSER_STAGE}/${load}`)
      ? { happened: true, output: 'carried after all' }
      : undefined,
  run: async () => {
    throw new OutcomeUnknown('The line went dead.', true)
  },
})

/** Runs until it is stopped. Nobody can tell whether it was done: `check()` finds nothing, once the test opens its gate. */
const endless = (name, title) =>
  defineTool({
    name,
    timeout: 10_000,
    description: 'Goes on for ever, and nobody can tell what came of it.',
    schema: z.strictObject({ until: z.string() }),
    access: 'write',
    describe: () => title,
    async check({ until }, _effectId, signal) {
      while (!existsSync(`${BROWSER_STAGE}/${until}`)) await sleep(20, undefined, { signal })
      return undefined
    },
    run: (_input, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  })

const lift = endless('lift', 'Lift the stone')
const haul = endless('haul', 'Haul the stone')

const vault = defineTool({
  name: 'vault',
  description: 'Only others may allow it.',
  schema: z.strictObject({ door: z.string() }),
  access: 'write',
  describe: ({ door }) => `Open ${door}`,
  run: async ({ door }) => `${door} is open`,
})

const asker = defineTool({
  name: 'asker',
  description: 'Asks for what only a person knows.',
  schema: z.strictObject({}),
  access: 'read',
  async run(_input, { ask }) {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 2, description: 'As on the ticket' },
        seats: { type: 'integer', minimum: 1, maximum: 4 },
        class: { enum: ['first', 'second'] },
      },
      required: ['name', 'seats'],
    }
    const { state, value } = await ask({ title: 'Who travels?', schema })
    return `${state}: ${JSON.stringify(value ?? null)}`
  },
})

export const tools = [pay, wipe, hurry, vault, fragile, lift, haul, asker]

export const policy = [
  { name: 'in a hurry', tool: 'hurry', decision: 'ask', timeout: 4_000, atTimeout: 'reject' },
  { name: 'by two', tool: 'vault', decision: 'ask', audience: ['approver'] },
  { name: 'without approval', tool: 'haul', decision: 'allow' },
]

/** The calls that a word of the user makes the model ask for. */
export function callsFor(word, rest) {
  const [first = 'ann', amount = '5'] = rest
  switch (word) {
    case 'pay':
      return [['pay', { to: first, amount: Number(amount) }]]
    case 'share':
      return rest.map((to) => ['pay', { to, amount: 5 }])
    case 'wipe':
      return [['wipe', { disk: first }]]
    case 'hurry':
      return [['hurry', {}]]
    case 'lift':
    case 'haul':
      return [[word, { until: first }]]
    case 'vault':
      return [['vault', { door: first }]]
    case 'carry':
      return [['fragile', { load: first }]]
    case 'who':
      return [['asker', {}]]
    default:
      return []
  }
}
