import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { theatre, visible } from './theatre.ts'

const scene = theatre()

/** Chats that were held by another way. */
async function held(...names: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const name of names) {
    const id = randomUUID()
    const response = await fetch(`${scene.stage.url}/chats/${id}/interactions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user_message: name }),
    })
    await response.text()
    ids.push(id)
  }
  return ids
}

test('chats are listed, searched, opened by their address, renamed, archived and deleted', async () => {
  const [apples, pears] = await held('answer apples', 'answer pears')
  const tab = await scene.visit().open(undefined, `/t/${pears}`)
  const list = tab.page.getByRole('navigation', { name: 'Recent chats' })
  const link = (name: string) => list.getByRole('link', { name })
  await visible(link('answer pears'))
  expect(await link('answer pears').getAttribute('aria-current')).toBe('page')
  await tab.shows('user: answer pears', 'assistant: Answer pears.')

  const search = tab.page.getByRole('searchbox', { name: 'Search chats' })
  await search.fill('APPLES')
  await expect.poll(() => link('answer pears').count()).toBe(0)
  await link('answer apples').click()
  await tab.shows('user: answer apples', 'assistant: Answer apples.')
  expect(tab.page.url()).toBe(`${scene.url}/t/${apples}`)
  await search.fill('nothing is called this')
  await visible(list.getByText(/No chat is called/))
  await search.fill('')

  const act = async (name: string, action: string) => {
    await list.getByRole('button', { name: `Actions for ${name}` }).click()
    await list.getByRole('button', { name: action, exact: true }).click()
  }
  await act('answer apples', 'Rename')
  await tab.page.getByRole('textbox', { name: 'New name of answer apples' }).fill('Orchard')
  await tab.page.keyboard.press('Enter')
  await visible(tab.page.getByRole('heading', { name: 'Orchard', level: 1 }))
  await list.getByRole('button', { name: 'Actions for Orchard' }).click()
  await tab.looksRight('threads')
  await list.getByRole('button', { name: 'Archive', exact: true }).click()
  await expect.poll(() => link('Orchard').count()).toBe(0)
  await tab.button('Archive').click()
  const archived = tab.page.getByRole('navigation', { name: 'Archived chats' })
  await visible(archived.getByRole('link', { name: 'Orchard' }))
  await archived.getByRole('button', { name: 'Actions for Orchard' }).click()
  await archived.getByRole('button', { name: 'Bring back' }).click()
  await tab.button('Back to recent chats').click()
  await visible(link('Orchard'))

  await act('Orchard', 'Delete')
  await visible(tab.page.getByRole('dialog', { name: 'Delete “Orchard”?' }))
  await tab.looksRight('delete')
  await tab.button('Keep it').click()
  await visible(link('Orchard'))
  await act('Orchard', 'Delete')
  await tab.button('Delete this chat').click()
  await expect.poll(() => link('Orchard').count()).toBe(0)
  await visible(tab.page.getByRole('heading', { name: 'What shall we do?' }))
  expect(await scene.stage.threads()).not.toContain(apples)
})

test('what could not be renamed or deleted is still there, and it is said why', async () => {
  const [id] = await held('answer stubborn')
  const tab = await scene.visit().open(undefined, `/t/${id}`)
  tab.expectTrouble()
  await tab.shows('user: answer stubborn', 'assistant: Answer stubborn.')
  await tab.page.route(`**/threads/${id}`, (route) => route.abort())
  const row = tab.page.locator('.thread-list li').filter({ hasText: 'answer stubborn' })
  const failed = tab.page.locator('.thread-list .refused')
  const act = async (action: string) => {
    await row.getByRole('button', { name: /^Actions for/ }).click()
    await row.getByRole('button', { name: action, exact: true }).click()
  }
  await act('Rename')
  const name = tab.page.getByRole('textbox', { name: 'New name of answer stubborn' })
  await name.fill('Mule')
  await tab.page.keyboard.press('Enter')
  await visible(failed.getByText(/^That did not work: /))
  expect(await name.inputValue()).toBe('Mule')
  await name.press('Escape')
  expect(await failed.count()).toBe(0)
  await act('Delete')
  await tab.button('Delete this chat').click()
  await visible(failed.getByText('That did not work: The server could not be reached. Try again.'))
  await tab.looksRight('delete-failed')
  expect(tab.page.url()).toBe(`${scene.url}/t/${id}`)
  await tab.shows('user: answer stubborn', 'assistant: Answer stubborn.')
})

test('the list hears of what others do, and says where somebody is needed', async () => {
  const tab = await scene.visit().open()
  const id = randomUUID()
  const text = `Write a file named ${id}.txt with the text hello`
  const response = await fetch(`${scene.stage.url}/chats/${id}/interactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user_message: text }),
  })
  const row = tab.page.locator('.thread').filter({ hasText: id.slice(0, 8) })
  await visible(row.getByText('Needs you'))
  await row.getByRole('link').click()
  await visible(tab.button('Reject'))
  await tab.button('Reject').click()
  await tab.page.getByLabel(/^Why/).waitFor()
  await tab.button('Reject').click()
  await expect.poll(() => row.getByText('Needs you').count(), { timeout: 15_000 }).toBe(0)
  await response.body?.cancel()
})

test('a chat that is deleted elsewhere is said to be', async () => {
  const [id] = await held('answer gone')
  const tab = await scene.visit().open(undefined, `/t/${id}`)
  tab.expectTrouble() // the page may ask once more for what is gone
  await fetch(`${scene.stage.url}/copilotkit/threads/${id}`, { method: 'DELETE' })
  await expect.poll(tab.phase, { timeout: 10_000 }).toBe('gone')
  await visible(tab.page.getByText('This chat was deleted'))
})

test('an address that no chat can have says so', async () => {
  const tab = await scene.visit().open()
  tab.expectTrouble()
  await tab.page.goto(`${scene.url}/t/${'x'.repeat(300)}`)
  await visible(tab.page.getByRole('heading', { name: 'There is no such chat' }))
  expect(await tab.phase()).toBe('nowhere')
  await tab.looksRight('no-such-chat')
})

test('an id may be anything that an address can hold', async () => {
  const id = `a/b c%25 ü ${randomUUID()}`
  const path = `/t/${encodeURIComponent(id)}`
  const tab = await scene.visit().open(undefined, path)
  await tab.say('answer odd')
  await tab.idle()
  expect(await scene.stage.threads()).toContain(id)
  await tab.reload()
  await tab.shows('user: answer odd', 'assistant: Answer odd.')
  const row = tab.page.locator('.thread[data-current]')
  await visible(row.getByText('answer odd'))
})
