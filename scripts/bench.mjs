// `npm run bench`: what things cost, as tables. `npm run bench -- deltas steps`: only those.
import './node-version.mjs'

import { peers, prepare, root } from './prepare.mjs'
import { main, run } from './run.mjs'
import { ensureSystem } from './system.mjs'

await main(async () => {
  const asked = process.argv.slice(2)
  const wanted = (...topics) => asked.length === 0 || topics.some((one) => asked.includes(one))
  const packages = [...peers, ...(wanted('page') ? ['test/browser'] : [])]
  await prepare({ tools: true, packages, page: wanted('page') }) // the servers that are measured run dist/
  await ensureSystem([
    ...(wanted('postgres', 'cluster', 'inbox', 'search')
      ? [{ command: 'initdb', package: 'postgresql' }]
      : []),
    ...(wanted('page') ? [{ command: 'chromium', package: ['chromium', 'fonts-liberation'] }] : []),
    ...(wanted('redis', 'cluster') ? [{ command: 'redis-server', package: 'redis-server' }] : []),
  ])
  const args = ['--import', 'tsx', 'bench/main.ts', ...asked]
  const { code } = await run(process.execPath, args, { cwd: root })
  return code
})
