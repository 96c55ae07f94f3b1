// `npm run chaos -- --minutes 30 [--seed 7]`: three servers while everything goes wrong, for as long as you like.
import './node-version.mjs'

import { prepare, root } from './prepare.mjs'
import { main, run } from './run.mjs'
import { ensureSystem } from './system.mjs'

await main(async () => {
  await prepare({ tools: true }) // the servers run dist/
  await ensureSystem([
    { command: 'initdb', package: 'postgresql' },
    { command: 'redis-server', package: 'redis-server' },
  ])
  const args = ['--import', 'tsx', 'test/chaos/main.ts', ...process.argv.slice(2)]
  const { code } = await run(process.execPath, args, { cwd: root })
  return code
})
