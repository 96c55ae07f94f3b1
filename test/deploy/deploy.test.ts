import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config.ts'
import { chatsClient } from '../support/chats.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { ignores, parseDockerfile, read, root, variablesOf, wordsOf } from './dockerfile.ts'

const stages = parseDockerfile(await read('Dockerfile'))
const last = stages.at(-1)!.instructions
const the = (name: string) => last.find((one) => one.name === name)!
const fromImage = variablesOf(the('ENV'))
const known = new Set((await read('src/config.ts')).match(/(?<=^ {2})[A-Z][A-Z_]+(?=:)/gm))

/** As compose and a shell fill them in. */
const given: Record<string, string> = {
  POSTGRES_PASSWORD: 'secret0123',
  HANDRAIL_API_KEYS: '0123456789abcdef=ann',
}
const filled = (value: string) =>
  value.replace(/\$\{(\w+):([?-])([^}]*)\}/g, (_, name, kind, text) =>
    kind === '?' ? given[name]! : (given[name] ?? text),
  )

describe('the Dockerfile', () => {
  test('copies what is there, is not ignored, or was made by an earlier stage', async () => {
    const ignored = ignores(await read('.dockerignore'))
    for (const [n, { instructions }] of stages.entries()) {
      for (const { flags, text } of instructions.filter(({ name }) => name === 'COPY')) {
        if (flags.from !== undefined) {
          expect(stages.slice(0, n).map(({ name }) => name)).toContain(flags.from)
          continue
        }
        for (const path of text.split(/\s+/).slice(0, -1)) {
          expect(existsSync(join(root, path)), path).toBe(true)
          expect(ignored(path), path).toBe(false)
        }
      }
    }
    for (const path of [
      'src/stores/postgres/001-journal.sql',
      'src/main.ts',
      'scripts/build.mjs',
      'web/package-lock.json',
      'web/.npmrc',
      'web/app/t/[id]/page.tsx',
    ])
      expect(ignored(path), path).toBe(false)
    for (const path of [
      '.env',
      '.git/HEAD',
      'data/log/1.ndjson',
      'node_modules/pg',
      'web/node_modules/next',
      'web/.next/standalone/server.js',
      'src/a.test.ts',
    ])
      expect(ignored(path), path).toBe(true)
  })

  test('runs one process, as nobody in particular, that is asked for its health', () => {
    expect(wordsOf(the('ENTRYPOINT').text)).toEqual(['node', 'dist/main.js'])
    expect(the('USER').text).toBe('node')
    expect(the('EXPOSE').text).toBe(fromImage.PORT)
    expect(the('HEALTHCHECK').text).toContain('/healthz')
    for (const name of Object.keys(fromImage).filter((one) => one !== 'NODE_ENV'))
      expect(known, name).toContain(name)
    // Without keys it says so, instead of listening where nobody can reach it.
    expect(() => readConfig(fromImage)).toThrow(/HANDRAIL_API_KEYS/)
  })
})

test('the page is an image of its own, and both files that deploy it say where the servers are', async () => {
  const { instructions } = stages.find(({ name }) => name === 'page')!
  const one = (name: string) => instructions.find((it) => it.name === name)!
  const own = variablesOf(one('ENV'))
  expect(one('USER').text).toBe('node')
  expect(one('EXPOSE').text).toBe(own.PORT)
  const { page, proxy } = parse(await read('docker-compose.yml'), { merge: true }).services
  expect(page.build.target).toBe('page')
  expect(page.ports[0]).toMatch(new RegExp(`:${own.PORT}$`))
  expect(page.environment.HANDRAIL_URL).toBe(`http://proxy:${proxy.ports[0].split(':').at(-1)}`)
  const all = parseAllDocuments(await read('deploy/kubernetes.yaml')).map((it) => it.toJS())
  const named = (kind: string, name: string) =>
    all.find((it) => it.kind === kind && it.metadata.name === name)
  const { labels } = named('Deployment', 'handrail-page').spec.template.metadata
  expect(named('Service', 'handrail-page').spec.selector).toEqual(labels)
  const [container] = named('Deployment', 'handrail-page').spec.template.spec.containers
  const { version } = JSON.parse(await read('package.json'))
  expect(container.image).toBe(`handrail-page:${version}`)
  expect(container.env).toContainEqual({ name: 'HANDRAIL_URL', value: 'http://handrail' })
  expect(named('Service', 'handrail').spec.ports[0].port).toBe(80)
  const { backend } = all.find(({ kind }) => kind === 'Ingress').spec.rules[1].http.paths[0]
  expect(backend.service.name).toBe('handrail-page')
})

test('a signal that comes while the server starts ends it in order', async () => {
  const place = await temporaryDirectory()
  const slow = join(place.path, 'slow.config.mjs')
  const loading = "console.log('loading')\nawait new Promise((go) => setTimeout(go, 1_000))"
  await writeFile(slow, `${loading}\nexport default {}\n`)
  const env = {
    PATH: process.env.PATH,
    PORT: '0',
    HANDRAIL_DATA: place.path,
    HANDRAIL_CONFIG: slow,
  }
  const child = spawn(process.execPath, [join(root, 'dist/main.js')], { env })
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
  await place.remove()
})

test('a tool that forgets to wait for what fails does not end the server: it is logged', async () => {
  const place = await temporaryDirectory()
  const config = join(place.path, 'careless.config.mjs')
  await writeFile(
    config,
    `let called = false
    const run = async () => {
      void Promise.reject(new Error('nobody waits for this'))
      return 'done'
    }
    const schema = { json: { type: 'object' }, issues: () => [] }
    const careless = { name: 'careless', description: 'forgets', schema, access: 'read', run }
    const model = {
      name: 'm',
      async *stream() {
        if (called) yield { type: 'text', text: 'Well.' }
        else yield { type: 'call', callId: '1', name: 'careless', input: '{}' }
        called = true
      },
    }
    export default { model, tools: [careless], builtIns: false }\n`,
  )
  const server = await startServer({ HANDRAIL_DATA: place.path, HANDRAIL_CONFIG: config })
  try {
    const chats = chatsClient(server.url)
    expect((await (await chats.start('c', 'go')).rest()).at(-1)!.data.status).toBe('COMPLETED')
    await expect.poll(() => server.output()).toContain('nobody waits for this')
    expect((await (await chats.start('c', 'again')).rest()).at(-1)!.data.status).toBe('COMPLETED')
    expect(server.child.exitCode).toBeNull()
  } finally {
    await server.kill()
    await place.remove()
  }
})

describe('docker-compose.yml', async () => {
  const { services, volumes } = parse(await read('docker-compose.yml'), { merge: true })
  const servers = Object.keys(services).filter((name) => services[name].image === 'handrail')

  test('gives every server settings that it takes', () => {
    expect(servers).toHaveLength(3)
    for (const name of servers) {
      const env = Object.entries<string>(services[name].environment)
      for (const [key] of env) expect(known, key).toContain(key)
      const own = Object.fromEntries(env.map(([key, value]) => [key, filled(value)]))
      const config = readConfig({ ...fromImage, ...own })
      expect(config).toMatchObject({ port: 8000, host: '0.0.0.0', redis: 'redis://redis:6379' })
      const url = new URL(config.database!.url)
      const { environment } = services.postgres
      expect(url.host).toBe('postgres:5432')
      expect(url.username).toBe(environment.POSTGRES_USER)
      expect(url.pathname).toBe(`/${environment.POSTGRES_DB}`)
      expect(url.password).toBe(filled(environment.POSTGRES_PASSWORD))
      const grace = Number.parseInt(services[name].stop_grace_period, 10) * 1_000
      expect(grace).toBeGreaterThan(config.drain + 3_000 + 5_000)
    }
  })

  test('puts all of them behind the proxy, and waits for what must be there', async () => {
    const addresses = servers.map((name) => `${name}:${fromImage.PORT}`).join(' ')
    expect(services.proxy.environment.SERVERS).toBe(addresses)
    const caddyfile = await read('deploy/Caddyfile')
    expect(caddyfile).toContain(`{$SERVERS:${addresses}}`)
    expect(caddyfile).toContain('flush_interval -1')
    expect(services.proxy.volumes[0]).toMatch(/^\.\/deploy\/Caddyfile:/)
    for (const { depends_on: needs = {} } of Object.values<Service>(services)) {
      for (const [name, { condition }] of Object.entries(needs)) {
        expect(condition).toBe('service_healthy')
        expect(services[name].healthcheck !== undefined || servers.includes(name)).toBe(true)
      }
    }
    for (const { volumes: used = [] } of Object.values<Service>(services))
      for (const [name] of used.map((one) => one.split(':')))
        if (!name!.startsWith('.')) expect(volumes).toHaveProperty(name!)
  })

  test('keeps Redis from forgetting by itself', () => {
    expect(services.redis.command.join(' ')).toContain('--maxmemory-policy noeviction')
  })
})

interface Service {
  depends_on?: Record<string, { condition: string }>
  volumes?: string[]
}

describe('deploy/kubernetes.yaml', async () => {
  const text = await read('deploy/kubernetes.yaml')
  const all = parseAllDocuments(text).map((one) => {
    expect(one.errors).toEqual([])
    return one.toJS()
  })
  const of = (kind: string) => all.find((one) => one.kind === kind)
  const pod = of('Deployment').spec.template.spec
  const [server] = pod.containers
  const secret = of('Secret')

  test('gives servers settings that they take, and their secrets by reference', () => {
    const env = Object.fromEntries(
      server.env.map(({ name, value }: Record<'name' | 'value', string>) => [name, value]),
    )
    for (const name of [...Object.keys(env), ...Object.keys(secret.stringData)])
      expect(known, name).toContain(name)
    const config = readConfig({ ...fromImage, ...secret.stringData, ...env })
    expect(config.port).toBe(server.ports[0].containerPort)
    for (const { envFrom } of [server, ...pod.initContainers])
      expect(envFrom[0].secretRef.name).toBe(secret.metadata.name)
    const { periodSeconds, failureThreshold } = server.readinessProbe
    expect(config.grace).toBeGreaterThan(periodSeconds * failureThreshold * 1_000)
    const patience = pod.terminationGracePeriodSeconds * 1_000
    expect(patience).toBeGreaterThan(config.grace + config.drain + 3_000 + 5_000)
  })

  test('names things that belong together alike', async () => {
    const { version } = JSON.parse(await read('package.json'))
    for (const { image } of [server, ...pod.initContainers])
      expect(image).toBe(`handrail:${version}`)
    for (const one of all.slice(1)) expect(one.metadata.namespace).toBe(all[0].metadata.name)
    const labels = of('Deployment').spec.template.metadata.labels
    expect(of('Service').spec.selector).toEqual(labels)
    expect(of('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels)
    expect(of('Service').spec.ports[0].targetPort).toBe(server.ports[0].name)
    const { backend } = of('Ingress').spec.rules[0].http.paths[0]
    expect(backend.service.name).toBe(of('Service').metadata.name)
    const volumes = pod.volumes.map(({ name }: { name: string }) => name)
    for (const { name } of server.volumeMounts) expect(volumes).toContain(name)
    const claim = pod.volumes[0].persistentVolumeClaim.claimName
    expect(claim).toBe(of('PersistentVolumeClaim').metadata.name)
  })

  test('asks for what the server answers, and keeps idle connections longer than balancers do', async () => {
    const place = await temporaryDirectory()
    const running = await startServer({ HANDRAIL_DATA: place.path })
    try {
      for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
        const { path, port } = server[probe].httpGet
        expect(port).toBe(server.ports[0].name)
        const response = await fetch(`${running.url}${path}`)
        expect(response.status).toBe(200)
        expect(response.headers.get('keep-alive')).toBe('timeout=75')
      }
    } finally {
      await running.kill()
      await place.remove()
    }
  })
})
