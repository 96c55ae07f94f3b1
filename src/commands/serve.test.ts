import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../../test/support/server.ts'
import { readConfig } from '../config.ts'
import { addressOf, serve } from './serve.ts'

const keys = { HANDRAIL_API_KEYS: 'a-key-of-16-chars=ann' }

test.each<[Record<string, string>, string]>([
  [{}, 'http://127.0.0.1:1 (this machine only: no HANDRAIL_API_KEYS set)'],
  [keys, 'http://localhost:1 (on all addresses)'],
  [{ ...keys, HOST: '127.0.0.1' }, 'http://127.0.0.1:1'],
  [{ HOST: '::1' }, 'http://[::1]:1 (this machine only: no HANDRAIL_API_KEYS set)'],
])('with %o it says where it listens', (env, said) => {
  expect(addressOf(readConfig(env), 1)).toBe(said)
})

test.each(['HANDRAIL_DATA', 'HANDRAIL_SPOOL'])('a file as %s is refused', async (name) => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const file = join(path, 'file')
  await writeFile(file, '')
  const env = { PORT: '0', LOG_LEVEL: 'silent', HANDRAIL_DATA: join(path, 'data'), [name]: file }
  const command = { config: readConfig(env), args: [], say() {}, progress() {} }
  await expect(serve(command)).rejects.toThrow(`${name}: ${file} is a file. Name a directory.`)
})
