import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { text } from '../../src/models/scripted.ts'
import { chatsClient } from '../support/chats.ts'
import { serve } from '../support/serve.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { asked, send, story } from '../support/story.ts'

const look = async (url: string, id: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${url}/threads/${id}/audit`, { headers })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

test('the owner of a thread sees that nothing was changed, while it grows', async () => {
  const server = await story([[send('1')], [text('Paid.')]])
  const { stream, interaction_id, approval_id } = await asked(server)
  const waiting = (await look(server.url, 'c')).body
  expect(waiting).toMatchObject({ verdict: 'ok', since: 1, problems: [] })
  await server.approve('c', interaction_id, { approval_id, approved: true })
  await stream.rest()
  const after = (await look(server.url, 'c')).body
  expect(after).toMatchObject({ verdict: 'ok', since: 1, problems: [] })
  expect(after.seq).toBeGreaterThan(waiting.seq as number)
  expect(after.head).not.toBe(waiting.head)
  expect((await look(server.url, 'nobody')).status).toBe(404)
})

test('a change of an entry that was verified before shows in the next verdict', async () => {
  const server = await story([[text('Paid.')]])
  await (await server.start('c', 'Pay 5 EUR')).rest()
  expect((await look(server.url, 'c')).body).toMatchObject({ verdict: 'ok', problems: [] })
  const { store } = server.server
  const { kept } = store
  store.kept = async (...all) =>
    (await kept(...all)).map(({ entry, ...rest }) => {
      const body = entry.body.replace('Pay 5 EUR', 'Pay 9 EUR')
      return { ...rest, entry: { ...entry, body } }
    })
  const { body } = await look(server.url, 'c')
  expect(body).toMatchObject({ verdict: 'broken', problems: [{ fault: 'body' }] })
  store.kept = kept
})

test('a journal with a damaged line on the disk is broken, and stays so', async () => {
  const place = await temporaryDirectory()
  const server = await startServer({ HANDRAIL_DATA: place.path })
  onTestFinished(async () => {
    await server.kill()
    await place.remove()
  })
  await (await chatsClient(server.url).start('c', 'Pay 5 EUR')).rest()
  const path = join(place.path, 'chats', 'c', 'journal.ndjson')
  const lines = () => readFile(path, 'utf8').catch(() => '')
  await expect.poll(lines).toContain('run.completed')
  await writeFile(path, (await lines()).replace('Pay 5 EUR', 'Pay 9 EUR'))
  for (let n = 0; n < 2; n++) {
    const { status, body } = await look(server.url, 'c')
    expect(status).toBe(200)
    expect(body).toMatchObject({ verdict: 'broken', problems: [{ fault: 'unreadable' }] })
  }
})

test('a thread that was deleted leaves a residue without a word of it', async () => {
  const server = await story([[text('Paid.')]])
  await (await server.start('secret-chat', 'The password is swordfish')).rest()
  await fetch(`${server.url}/chats/secret-chat`, { method: 'DELETE' })
  await server.close()
  const [name, ...others] = await readdir(join(server.data, 'erased'))
  expect(others).toEqual([])
  const residue = await readFile(join(server.data, 'erased', name!), 'utf8')
  for (const word of ['secret-chat', 'swordfish', 'Paid', 'local', 'assistant'])
    expect(residue).not.toContain(word)
})

test('a stranger’s thread has no verdict, and the key is for its owner alone (I10)', async () => {
  const [ann, bob] = ['key-of-ann-0000001', 'key-of-bob-0000001']
  const server = await serve({}, { env: { HANDRAIL_API_KEYS: `${ann}=ann,${bob}=bob` } })
  const as = (key: string) => ({
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
  })
  const body = JSON.stringify({ user_message: 'mine' })
  const path = `${server.url}/chats/c/interactions`
  await (await fetch(path, { method: 'POST', headers: as(ann), body })).text()
  expect(await look(server.url, 'c', as(ann))).toMatchObject({ status: 200 })
  expect(await look(server.url, 'c', as(bob))).toMatchObject({ status: 404 })
  expect((await stat(join(server.data, 'audit.key'))).mode & 0o777).toBe(0o600)
})
