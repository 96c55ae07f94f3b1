import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { freePort, type RedisServer, startRedis } from '../support/redis.ts'
import { temporaryDirectory } from '../support/server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const text = await readFile(`${root}docs/deploy.md`, 'utf8')
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map((m) => m[1]!)

let postgres: Postgres
let redis: RedisServer
let place: Awaited<ReturnType<typeof temporaryDirectory>>

beforeAll(async () => {
  ;[postgres, redis] = await Promise.all([startPostgres(), startRedis()])
  place = await temporaryDirectory()
}, 120_000)

afterAll(async () => {
  await Promise.all([postgres.stop(), redis.stop()])
  await place.remove()
})

async function sql(url: string, statements: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const one of statements.split(';\n').filter(Boolean)) await client.query(one)
  await client.end()
}

test('docs/deploy.md prints commands that work as printed, in this order', async () => {
  const [database, watching] = blocks('sql')
  await sql(postgres.url, database!)
  const commands = blocks('sh').filter((block) => !block.includes('docker '))
  expect(commands).toHaveLength(6)
  const [first, second] = [await freePort(), await freePort()]
  const stop = 'kill $(jobs -p); wait\n'
  const script = commands
    .map((one) => `${one.startsWith('psql ') ? stop : ''}${one}\necho "--- done"\n`)
    .join('')
    .replaceAll('npm start --', `node ${root}dist/main.js`)
    .replaceAll('npm start', `node ${root}dist/main.js`)
    .replaceAll('localhost:5432', `127.0.0.1:${postgres.port}`)
    .replaceAll('localhost:6379', `127.0.0.1:${redis.port}`)
    .replaceAll('8001', String(first))
    .replaceAll('8002', String(second))
  const env = { PATH: process.env.PATH, HOST: '127.0.0.1', LOG_LEVEL: 'warn' }
  const leave = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n" // whatever happens, no server stays
  const options = { cwd: place.path, timeout: 90_000, env }
  const { stdout, stderr } = await promisify(execFile)('bash', ['-uc', leave + script], options)
  const said = stdout.split('--- done')
  expect(said[0]).toMatch(/applied 001-journal\n/)
  expect(said[0]!.match(/"status":"ready"/g)!.length).toBeGreaterThanOrEqual(2)
  expect(said[1]).toContain('"status":"COMPLETED"')
  expect(stderr).not.toMatch(/error/i)
  expect(said[3]).toContain('OK')
  expect(said[4]).toMatch(/^\n0 threads untouched since .*\n0 threads erased/)
  expect(said[5]).toMatch(/^\n1 thread from .* to .*copy/)
  const digests = [...said[5]!.matchAll(/digest (\w+)/g)].map(([, digest]) => digest)
  expect(new Set(digests).size).toBe(1)
  expect(digests).toHaveLength(2)
  const url = `postgresql://handrail@127.0.0.1:${postgres.port}/handrail`
  await sql(url, watching!)
}, 120_000)

test('the table of docs/deploy.md has settings that exist, with their defaults', () => {
  const config = readConfig({ DATABASE_URL: 'postgresql://a@b/c' })
  const row = (name: string) => text.split('\n').find((line) => line.startsWith(`| \`${name}`))
  expect(row('HANDRAIL_MAX_LEGS')).toContain(String(config.maxLegs))
  expect(row('HANDRAIL_DATABASE_CONNECTIONS')).toContain(String(config.database!.connections))
  expect(row('HANDRAIL_DATABASE_SCHEMA')).toContain(config.database!.schema)
  expect(row('HANDRAIL_LEASE_MS')).toContain(`${config.leaseTtl / 1_000} s`)
  expect(row('HANDRAIL_DRAIN_MS')).toContain(`${config.drain / 1_000} s`)
  expect(row('HANDRAIL_TOTAL_LEGS')).toContain(config.legLimits.total ?? 'no limit')
})
