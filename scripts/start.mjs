// `npm start`: from a fresh clone to a listening server. Arguments go to the server.
import './node-version.mjs'

import { existsSync } from 'node:fs'
import { entry, prepare, root } from './prepare.mjs'
import { main, run, Stop } from './run.mjs'

await main(async () => {
  await prepare()
  if (!existsSync(entry)) throw new Stop('There is no dist/main.js and no src/main.ts to build it.')
  // The clone's folder, wherever we were called from: the same data every time.
  const { code } = await run(process.execPath, [entry, ...process.argv.slice(2)], { cwd: root })
  return code
})
