// `npm start`: from a fresh clone to a listening server and its page. Arguments go to the server.
import './node-version.mjs'

import { existsSync } from 'node:fs'
import { pagePort, startPage } from './page.mjs'
import { entry, prepare, root } from './prepare.mjs'
import { main, run, Stop } from './run.mjs'
import { web } from './web.mjs'

await main(async () => {
  const args = process.argv.slice(2)
  const serves = args.length === 0 || args[0] === 'serve'
  const withPage = serves && process.env.HANDRAIL_WEB !== 'off' && existsSync(web)
  const port = withPage ? await pagePort(process.env) : undefined
  await prepare({ page: withPage })
  if (!existsSync(entry)) throw new Stop('There is no dist/main.js and no src/main.ts to build it.')
  let page
  const { code } = await run(process.execPath, [entry, ...args], {
    cwd: root, // the clone's folder, wherever we were called from: the same data every time
    stdio: ['inherit', withPage ? 'pipe' : 'inherit', 'inherit'],
    onSpawn(child) {
      let said = ''
      child.stdout?.on('data', (chunk) => {
        process.stdout.write(chunk)
        if (page) return
        said += chunk
        const url = /listens on (http:\/\/\S+)/.exec(said)?.[1]
        if (url) page = startPage({ url, port, env: process.env })
      })
    },
  })
  await page?.stop()
  return code
})
