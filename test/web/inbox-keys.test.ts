import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { theatre, visible } from './theatre.ts'

const scene = theatre({
  HANDRAIL_API_KEYS: 'ann-has-this-long-key=ann,bob-has-this-long-key=bob:user+approver',
})
type Who = 'ann' | 'bob'

async function send(who: Who, path: string, body?: object): Promise<Response> {
  const authorization = `Bearer ${who}-has-this-long-key`
  return await fetch(scene.stage.url + path, {
    headers: { authorization, 'content-type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
}

interface Listed {
  approvals: { id: string; title: string; decided_by: string | null }[]
}

const listed = async (who: Who, query = ''): Promise<Listed['approvals']> =>
  ((await (await send(who, `/approvals${query}`)).json()) as Listed).approvals

/** What the page shows at the moment of a key press, and the decision that it sends. */
interface Seen {
  key?: string
  decided?: string
  /** The row that is open. */
  chosen: string | null
}

/** Runs in the page before its own code hears of a key: notes the row that is open on the screen. */
const recorder = `
  window.seen = []
  window.chosen = () => {
    const open = [...document.querySelectorAll('.rows .row[aria-expanded="true"]')]
    return open.length === 1 ? open[0].closest('li').dataset.ask : open.length > 1 ? 'several' : null
  }
  const note = (what) => window.seen.push({ ...what, chosen: window.chosen() })
  document.addEventListener('keydown', ({ key }) => note({ key }), true)
  const { fetch } = window
  window.fetch = (input, init) => {
    const decided = /\\/approvals\\/([^/?]+)$/.exec(String(input?.url ?? input))?.[1]
    if (decided && init?.method === 'POST') note({ decided })
    return fetch(input, init)
  }
`

/** Numbers that are the same for the same seed. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

const keys = [
  'j',
  'j',
  'j',
  'k',
  'k',
  'a',
  'a',
  'a',
  'a',
  'r',
  'e',
  'Escape',
  'Escape',
  'Enter',
  ' ',
]
const seeds = (process.env.INBOX_SEEDS ?? '7').split(',').map(Number)

test.each(seeds)(
  'random keys decide only the request that was open at the key press, seed %i',
  async (seed) => {
    const next = random(seed)
    const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(next() * list.length)]
    const tab = await scene.visit().open({}, '/inbox')
    await tab.page.getByLabel('API key').fill('ann-has-this-long-key')
    await tab.button('Sign in').click()
    await visible(tab.page.getByRole('heading', { name: 'Inbox', level: 1 }))
    await tab.page.evaluate(recorder)
    const ask = async () => {
      const user_message = next() < 0.25 ? `wipe d${seed}` : `pay p${seed} 1`
      const response = await send('ann', `/chats/${randomUUID()}/interactions`, { user_message })
      onTestFinished(() => response.body?.cancel())
    }
    for (let n = 0; n < 6; n++) await ask()
    await expect.poll(() => tab.page.locator('.rows > li').count()).toBeGreaterThan(4)
    for (let n = 0; n < 60; n++) {
      const luck = next()
      const isPlain = luck < 0.2 // a decision as people make it, in between
      for (const key of isPlain ? ['Escape', pick(['j', 'k'])!] : [pick(keys)!])
        await tab.page.keyboard.press(key)
      if (isPlain) {
        await tab.page.waitForTimeout(900)
        await tab.page.keyboard.press('a')
      } else if (luck < 0.5) await tab.page.waitForTimeout(pick([20, 300, 900, 900])!)
      else if (luck > 0.9) await ask()
      else if (luck > 0.8) {
        // Another user decides at the same time, often what is open here.
        const chosen = (await tab.page.evaluate('window.chosen()')) as string | null
        const open = (await listed('bob')).map(({ id }) => id)
        const id = open.find((one) => one === chosen && next() < 0.5) ?? pick(open)
        if (id) void send('bob', `/approvals/${id}`, { approved: false })
      }
    }
    await tab.page.waitForTimeout(500)
    const seen = (await tab.page.evaluate('window.seen')) as Seen[]
    const sent = seen.flatMap(({ decided, chosen }, i) => {
      const press = seen.slice(0, i).findLast(({ key }) => key !== undefined)
      return decided === undefined ? [] : [{ decided, chosen, atPress: press?.chosen }]
    })
    for (const one of sent) expect(one).toMatchObject({ chosen: one.decided, atPress: one.decided })
    // The server has no decision of hers that was not seen on the page.
    const settled = await listed('ann', '?state=settled&limit=100')
    const hers = settled.flatMap(({ id, title, decided_by }) =>
      decided_by === 'ann' && title.includes(`${seed}”`) ? [id] : [],
    )
    expect(hers.length).toBeGreaterThan(0)
    expect(sent.map(({ decided }) => decided)).toEqual(expect.arrayContaining(hers))
  },
  120_000,
)
