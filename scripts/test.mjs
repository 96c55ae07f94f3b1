// `npm test`: everything. `npm test -- <vitest arguments>`: only those tests, without the checks.
// `npm run check`: the checks without the tests.
import './node-version.mjs'

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { clients, prepare, root } from './prepare.mjs'
import { elapsed, exitCodeOf, main, run, Stop } from './run.mjs'
import { ensureSystem } from './system.mjs'

/** Programs the tests start; a browser without fonts shows nothing. */
const system = [
  { command: 'chromium', package: ['chromium', 'fonts-liberation'] },
  { command: 'initdb', package: 'postgresql' },
  { command: 'redis-server', package: 'redis-server' },
]

const checks = [
  ['lock', ['scripts/check-lock.mjs']],
  ['style', ['node_modules/@biomejs/biome/bin/biome', 'check', '.']],
  ['types', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json']],
  ['page types', ['node_modules/typescript/bin/tsc', '-p', 'test/browser/tsconfig.json']],
  ['web types', ['node_modules/typescript/bin/tsc', '-p', 'web/tsconfig.json']],
]

await main(async () => {
  const given = process.argv.slice(2)
  const checksOnly = given[0] === '--checks'
  const only = checksOnly ? [] : given
  const report = join(mkdtempSync(join(tmpdir(), 'handrail-test-')), 'report.json')
  try {
    const failed = []
    const [lock, ...others] = only.length > 0 ? [] : checks
    // First and alone: on a wrong lock the install below would fail with a riddle.
    if (lock && !(await phase(...lock))) return 1
    await prepare({ tools: true, packages: clients }) // the crash tests run dist/
    if (!checksOnly) await ensureSystem(system)
    for (const [name, args] of others) if (!(await phase(name, args))) failed.push(name)
    if (!(checksOnly || (await phase('tests', vitest(report, only))))) failed.push('tests')
    if (failed.length > 0) console.log(`failed: ${failed.join(', ')}`)
    tell(report)
    return failed.length > 0 ? 1 : 0
  } finally {
    rmSync(join(report, '..'), { recursive: true, force: true })
  }
})

async function phase(name, args) {
  const since = Date.now()
  console.log(`${name} ...`)
  const { code, asked } = await run(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (asked) throw new Stop(`Stopped during ${name}.`, exitCodeOf(asked))
  console.log(`${name}: ${code === 0 ? 'passed' : 'failed'} in ${elapsed(since)}`)
  return code === 0
}

function vitest(report, only) {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  return ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...only]
}

/** The last line: `N passed, N failed`. A file that could not even be loaded counts as one failed. */
function tell(report) {
  let result
  try {
    result = JSON.parse(readFileSync(report, 'utf8'))
  } catch {
    return // vitest did not get that far, and has said why
  }
  const unloaded = result.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  ).length
  for (const { name, assertionResults } of result.testResults)
    for (const { fullName, status, failureMessages } of assertionResults)
      if (status === 'passed' && failureMessages.length > 0)
        console.log(
          `passed only when tried again: ${relative(root, name)} ${fullName}\n${failureMessages[0]}`,
        )
  const skipped = result.numPendingTests + result.numTodoTests
  if (skipped > 0) console.log(`${skipped} skipped`)
  console.log(`${result.numPassedTests} passed, ${result.numFailedTests + unloaded} failed`)
}
