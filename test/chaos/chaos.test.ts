import { expect, test } from 'vitest'
import { chaos } from './chaos.ts'

/** Always the same in CI; `HANDRAIL_SEED=random` looks elsewhere. */
const asked = process.env.HANDRAIL_SEED ?? '2026'
const seed = asked === 'random' ? Date.now() % 1_000_000 : Number(asked)
const seconds = Number(process.env.HANDRAIL_CHAOS_SECONDS ?? 150)

test(`three servers, and whatever goes wrong: nothing is lost, doubled or half done (seed ${seed})`, async () => {
  const { problems, figures, directory } = await chaos({ seed, seconds })
  console.log(`seed ${seed}, ${seconds} s\n${figures}`)
  expect(problems, `seed ${seed}; logs and journal are kept in ${directory}`).toEqual([])
})
