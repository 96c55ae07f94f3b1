// `npm run bench`: what things cost, as tables. `npm run bench -- deltas steps`: only those.
import './node-version.mjs'

import { peers, prepare, root } from './prepare.mjs'
import { main, run } from './run.mjs'
import { ensureSystem } from './system.mjs'

await main(async () => {
  await prepare({ tools: true, packages: peers }) // the servers that are measured run dist/
  const asked = process.argv.slice(2)
  if (asked.length === 0 || asked.includes('postgres'))
    await ensureSystem([{ command: 'initdb', package: 'postgresql' }])
  const args = ['--import', 'tsx', 'bench/main.ts', ...asked]
  const { code } = await run(process.execPath, args, { cwd: root })
  return code
})
