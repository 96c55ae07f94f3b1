import { openBrowser } from '../test/browser/browser.ts'
import { startPage } from '../test/web/page-server.ts'
import { handrail, kb, median, ms, quantile, sleep, table, withDirectory } from './support.ts'

const rounds = 20

/** What the page weighs, and how long a piece of an answer takes from the wire to the screen. */
export async function page(): Promise<void> {
  await withDirectory(async (directory) => {
    const server = await handrail(directory, { HANDRAIL_CONFIG: '', HANDRAIL_DEMO_DELAY_MS: '5' })
    const web = await startPage(server.url)
    const browser = await openBrowser()
    try {
      const tab = await browser.newPage()
      await tab.addInitScript(watchFirstPiece)
      const since = performance.now()
      await tab.goto(`${web.url}/t/${crypto.randomUUID()}`)
      await tab.getByRole('button', { name: 'What can you do?' }).waitFor()
      const ready = performance.now() - since
      const [sent, whole, requests] = (await tab.evaluate(weight)) as [number, number, number]
      for (let n = 0; n < rounds; n++) {
        await tab
          .getByRole('textbox', { name: 'Your message', exact: true })
          .fill(`count to ${n + 5}`)
        await tab.keyboard.press('Enter')
        while (Number(await tab.evaluate('window.painted.length')) <= n) await sleep(5)
        await tab.getByRole('button', { name: 'Send', exact: true }).waitFor()
      }
      const times = (await tab.evaluate('window.painted')) as number[]
      table('16. The page, in Chromium on the same machine', [
        [
          'scripts and styles',
          'as sent',
          'requests',
          'open to usable',
          'first piece to paint p50',
          'p95',
        ],
        [
          ...[kb(whole), kb(sent), String(requests), ms(ready)],
          ...[ms(median(times)), ms(quantile(times, 0.95))],
        ],
      ])
    } finally {
      await Promise.all([browser.close(), web.close(), server.stop()])
    }
  })
}

const weight = `performance.getEntriesByType('resource')
  .filter(({ name }) => /\\.(js|css)(\\?|$)/.test(name))
  .reduce(([sent, whole, count], { encodedBodySize, decodedBodySize }) =>
    [sent + encodedBodySize, whole + decodedBodySize, count + 1], [0, 0, 0])`

/** Runs in the page, before it: notes when the first words of an answer arrive, and when they are seen. */
const watchFirstPiece = `
  window.painted = []
  const plain = window.fetch
  window.fetch = async (...args) => {
    const response = await plain(...args)
    if (!String(args[0]).endsWith('/run')) return response
    const answers = document.querySelectorAll('.answer .prose').length
    let arrived
    const body = response.body.pipeThrough(new TransformStream({
      transform(chunk, out) {
        if (arrived === undefined && new TextDecoder().decode(chunk).includes('TEXT_MESSAGE_CONTENT')) {
          arrived = performance.now()
          const look = () => {
            if (document.querySelectorAll('.answer .prose').length > answers)
              requestAnimationFrame(() => setTimeout(() => window.painted.push(performance.now() - arrived)))
            else setTimeout(look, 1)
          }
          look()
        }
        out.enqueue(chunk)
      },
    }))
    return new Response(body, response)
  }
`
