import { expect, test } from 'vitest'
import { theatre, visible } from './theatre.ts'

const scene = theatre({ HANDRAIL_API_KEYS: 'ann-has-this-long-key=ann,bob-has-this-long-key=bob' })

test('a server that wants keys: the page asks, and each person sees their own chats', async () => {
  const { open } = scene.visit()
  const tab = await open({})
  const signIn = async (key: string) => {
    await tab.page.getByLabel('API key').fill(key)
    await tab.button('Sign in').click()
  }
  await visible(tab.page.getByRole('heading', { name: 'Sign in' }))
  await tab.looksRight('sign-in')
  await signIn('wrong')
  await visible(tab.page.getByText(/does not know this key/))
  await signIn('ann-has-this-long-key')
  await tab.live()
  await tab.say('answer ann')
  await tab.idle()
  await tab.shows('user: answer ann', 'assistant: Answer ann.')
  await tab.reload()
  await tab.shows('user: answer ann', 'assistant: Answer ann.')

  // The key stops working: it is asked for again, and what was being written is kept.
  await tab.input.fill('not sent yet')
  const refusal = { status: 401, json: { error: { code: 'unauthenticated', message: 'No.' } } }
  await tab.page.route('**/api/copilotkit/**', (route) => route.fulfill(refusal))
  await visible(tab.page.getByRole('heading', { name: 'Sign in' }))
  await tab.page.unroute('**/api/copilotkit/**')
  await signIn('ann-has-this-long-key')
  await tab.shows('user: answer ann', 'assistant: Answer ann.')
  expect(await tab.input.inputValue()).toBe('not sent yet')

  const address = new URL(tab.page.url()).pathname
  const other = await open({}, address)
  await other.page.getByLabel('API key').fill('bob-has-this-long-key')
  await other.button('Sign in').click()
  await other.live()
  await visible(other.page.getByText('Your chats will be listed here.'))
  expect(await other.transcript()).toEqual([])
  await other.button('Sign out').click()
  await visible(other.page.getByRole('heading', { name: 'Sign in' }))
  expect(await other.page.getByText(/does not know this key/).count()).toBe(0)
})
