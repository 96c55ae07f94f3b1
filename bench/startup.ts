import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { handrail, mb, median, ms, quickest, table, withDirectory } from './support.ts'

const makeChats = fileURLToPath(new URL('./make-chats.ts', import.meta.url))

/** Whether a server with many chats starts and lists like one with few. */
export async function startup(): Promise<void> {
  const rows = [await measure(100), await measure(100_000)]
  table(
    '3. Start-up and the first page of the list (GET /chats?limit=50)',
    [['chats', 'spawn to listening', 'first page', 'pages after (p50)', 'RSS'], ...rows],
    ['The files were written just before, so they come from the page cache. Start-up: best of 3.'],
  )
}

function measure(chats: number): Promise<string[]> {
  return withDirectory(async (directory) => {
    const args = ['--import', 'tsx', makeChats, '--directory', directory, '--unsynced']
    await promisify(execFile)(process.execPath, [...args, '--chats', String(chats)])
    const starts: number[] = []
    for (let n = 0; n < 2; n++) {
      const server = await handrail(directory)
      starts.push(server.started)
      await server.stop()
    }
    const server = await handrail(directory)
    starts.push(server.started)
    const pages: number[] = []
    for (let n = 0; n < 21; n++) {
      const since = performance.now()
      const page = await (await fetch(`${server.url}/chats?limit=50`)).json()
      pages.push(performance.now() - since)
      if ((page as { chats: unknown[] }).chats.length !== 50) throw new Error('the page is short')
    }
    const { rss } = await server.usage()
    await server.stop()
    const first = ms(pages[0]!)
    const start = ms(Math.min(...starts))
    return [chats.toLocaleString('en'), start, first, ms(median(pages.slice(1))), mb(rss)]
  }, quickest)
}
