// `npm run bench`: what things cost, as tables. `npm run bench -- deltas steps`: only those.
import './node-version.mjs'

import { peers, prepare, root } from './prepare.mjs'
import { main, run } from './run.mjs'

await main(async () => {
  await prepare({ tools: true, packages: peers }) // the servers that are measured run dist/
  const args = ['--import', 'tsx', 'bench/main.ts', ...process.argv.slice(2)]
  const { code } = await run(process.execPath, args, { cwd: root })
  return code
})
