// `npm run build`: the same dist/ that `npm start` makes, assets and stamp included; with `-- --page` the page too.
import './node-version.mjs'

import { prepare } from './prepare.mjs'
import { main } from './run.mjs'

await main(() => prepare({ tools: true, page: process.argv.includes('--page') }))
