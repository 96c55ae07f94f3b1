// `npm run dev`: server and page, each taking up what is changed while they run.
import './node-version.mjs'

import { join } from 'node:path'
import { pagePort } from './page.mjs'
import { prepare, root } from './prepare.mjs'
import { main, run } from './run.mjs'
import { web, webEnv } from './web.mjs'

await main(async () => {
  const withPage = process.env.HANDRAIL_WEB !== 'off'
  const port = withPage ? await pagePort(process.env) : undefined
  await prepare({ tools: true, packages: withPage ? ['web'] : [] })
  const children = []
  const start = (args, cwd, env = {}) =>
    run(process.execPath, args, {
      cwd,
      env: { ...process.env, ...env },
      onSpawn: (child) => children.push(child),
    })
  const tsx = join(root, 'node_modules/tsx/dist/cli.mjs')
  const server = start([tsx, 'watch', 'src/main.ts', ...process.argv.slice(2)], root)
  const url = `http://127.0.0.1:${process.env.PORT || 8000}`
  const next = join(web, 'node_modules/next/dist/bin/next')
  const page =
    withPage &&
    start([next, 'dev', '--port', String(port), '--hostname', '127.0.0.1'], web, {
      ...webEnv,
      HANDRAIL_URL: process.env.HANDRAIL_URL || url,
    })
  const { code } = await Promise.race([server, ...(page ? [page] : [])])
  for (const child of children) child.kill('SIGTERM')
  await Promise.all([server, page])
  return code
})
