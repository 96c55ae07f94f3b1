import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { chatsClient } from '../support/chats.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

async function blocks(language: string): Promise<string[]> {
  const text = await readFile(join(root, 'README.md'), 'utf8')
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map((m) => m[1]!)
}

describe('the README', () => {
  test('prints commands that work as printed, one after the other', async () => {
    const place = await temporaryDirectory()
    const server = await startServer({ HANDRAIL_DATA: join(place.path, 'data') })
    try {
      const commands = (await blocks('sh')).filter((block) => !block.startsWith('npm '))
      expect(commands.length).toBeGreaterThanOrEqual(7)
      const script = commands.map((block) => `${block}\necho "--- done"\n`).join('')
      const here = script.replaceAll('localhost:8000', server.url.replace('http://', ''))
      const options = { cwd: place.path, timeout: 60_000 }
      const { stdout } = await promisify(execFile)('bash', ['-uc', here], options)
      const said = stdout.split('--- done')
      expect(said[0]).toContain('event: interaction_complete')
      expect(said[1]).toContain('"status":"processed"')
      expect(said[1]).toMatch(/event: interaction_complete\nhello/)
      expect(said[2]).toContain('"reason":"not today"')
      expect(said[2]).toContain('event: answer')
      expect(said[3]).toContain('"status":"cancelling"')
      expect(said[3]).toContain('"status":"CANCELLED"')
      expect(said[4]).toContain('partly cloudy')
      expect(said[5]).toContain('"superseded":true')
      expect(said[6]).toContain('"status":"COMPLETED"')
      expect(said[7]).toContain('"title":"Write “later.txt”')
      expect(said[7]).toContain('"status":"processed"')
      expect(said[8]).toContain('{"success":true}')
      expect(said[8]).toContain('event: workflow_completed')
    } finally {
      await server.kill()
      await place.remove()
    }
  }, 120_000)

  test('links to files that are there, and in the package', async () => {
    const text = await readFile(join(root, 'README.md'), 'utf8')
    const links = [...text.matchAll(/\]\((?!http)([^)#]+)/g)].map((found) => found[1]!)
    const { files } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    for (const link of links) {
      expect(existsSync(join(root, link)), link).toBe(true)
      expect(files).toContain(link.split('/')[0])
    }
  })

  test('shows a configuration that works as printed', async () => {
    const [config] = await blocks('ts')
    const place = await temporaryDirectory()
    const folder = join(root, '.handrail')
    const file = join(folder, `readme-${process.pid}.config.ts`)
    await mkdir(folder, { recursive: true })
    await writeFile(file, config!)
    const server = await startServer({ HANDRAIL_DATA: place.path, HANDRAIL_CONFIG: file })
    try {
      const client = chatsClient(server.url)
      const { data } = (await (await client.start('a', 'Run this code: 1')).rest()).find(
        ({ event }) => event === 'tool_result',
      )!
      expect(data.tool_output).toContain('No code here.')
      expect((await client.chat('a')).interactions[0].agent).toBe('clerk')
    } finally {
      await server.kill()
      await rm(file)
      await place.remove()
    }
  }, 120_000)
})
