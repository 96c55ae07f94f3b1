import { z } from 'zod'

/** What variables of the environment may be. Each message ends a sentence that begins with the name. */
const read = (write: string, value: (text: string) => number | undefined) =>
  z.string().transform((text, context) => {
    const found = value(text.trim())
    if (found !== undefined) return found
    context.addIssue({ code: 'custom', message: `write ${write}, not ${text}.` })
    return z.NEVER
  })

/** Digits only: `0x50` and `1e3` would be taken for what nobody meant. */
const digits = (least: number, unit = '', most = Number.MAX_SAFE_INTEGER) => {
  const range = most < Number.MAX_SAFE_INTEGER ? `from ${least} to ${most}` : `of ${least} or more`
  const write = unit === '' ? `a whole number ${range}` : `${unit} as a whole number ${range}`
  return read(write, (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
    return number >= least && number <= most ? number : undefined
  })
}

export const whole = (fallback: number, least = 0, unit?: string, most?: number) =>
  digits(least, unit, most).default(fallback)
/** Absent means no limit: a default would be one. */
export const limit = digits(1).optional()
export const milliseconds = digits(0, 'milliseconds').optional()
export const money = read('a number over 0', (text) => {
  const number = /^\d*\.?\d+$/.test(text) ? Number(text) : 0
  return number > 0 ? number : undefined
}).optional()
export const onOff = (fallback: 'on' | 'off') => z.enum(['on', 'off']).default(fallback)

export const address = (like: string) =>
  z
    .string()
    .refine(
      (text) => /^https?:\/\//.test(text) && URL.canParse(text),
      `write an address that looks like ${like}`,
    )
    .optional()

/** First words of the addresses that others have. */
export const takenPaths = [
  ...['agent-orchestrator', 'approvals', 'chats', 'docs', 'healthz', 'metrics', 'openapi.json'],
  ...['readyz', 'threads', 'usage'],
]

export const basePath = z
  .string()
  .regex(/^(\/[\w.-]+)+$/, 'must look like /copilotkit')
  .refine(
    (path) => !takenPaths.includes(path.split('/')[1]!),
    'something else is served there. Write another path, such as /copilotkit.',
  )
  .default('/copilotkit')

export const origins = z
  .string()
  .default('')
  .transform((text) => text.split(/[\s,]+/).filter(Boolean))
  .superRefine((list, context) => {
    const strange = list.find((one) => !isOrigin(one))
    if (strange !== undefined)
      context.addIssue({
        code: 'custom',
        message: `${strange} is no origin as browsers send it. Write https://app.example.org, with nothing behind it, or *, or none.`,
      })
  })

function isOrigin(text: string): boolean {
  if (text === '*' || text === 'null' || text === 'none') return true
  if (text.includes('*')) return false // no browser sends it: origins are compared as a whole
  // Of apps and extensions, whose schemes have no origin in the URL standard.
  if (!/^https?:/i.test(text)) return /^[a-z][a-z0-9+.-]*:\/\/[^/?#]+$/.test(text)
  return URL.canParse(text) && new URL(text).origin === text
}
