// The page's server as a child of another process, which it does not outlive.
import { pathToFileURL } from 'node:url'
import { webServer } from './web.mjs'

process.on('disconnect', () => process.exit(0))
await import(pathToFileURL(webServer).href)
