// The page's server as a child of another process, which it does not outlive.
import { pathToFileURL } from 'node:url'
import { webServer } from './web.mjs'

process.on('disconnect', () => process.exit(0))
await import(pathToFileURL(webServer).href)

// Next says nowhere when it listens. That a server of this process does is enough: there is no other.
const watch = setInterval(() => {
  if (!process.getActiveResourcesInfo().includes('TCPServerWrap')) return
  clearInterval(watch)
  process.send?.('listening')
}, 50)
