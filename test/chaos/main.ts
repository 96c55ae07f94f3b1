import { parseArgs } from 'node:util'
import { chaos } from './chaos.ts'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '5' }, seed: { type: 'string' } },
})
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const seconds = Number(values.minutes) * 60
if (!(seconds > 0) || !Number.isInteger(seed)) {
  console.error('npm run chaos -- --minutes 30 --seed 7')
  process.exit(2)
}
const since = Date.now()
const progress = (line: string) =>
  console.log(`${String(Math.round((Date.now() - since) / 1_000)).padStart(5)} s  ${line}`)

console.log(`seed ${seed}, ${seconds} s of trouble`)
const { problems, figures, directory } = await chaos({ seed, seconds, progress })
console.log(figures)
for (const problem of problems.slice(0, 20)) console.log(`- ${problem}`)
if (problems.length > 0) {
  console.log(`${problems.length} problems; seed ${seed}; logs and journal are in ${directory}`)
  process.exit(1)
}
console.log('nothing was lost, doubled or half done')
