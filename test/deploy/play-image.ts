// `npm run test:image`: the Dockerfile's own steps on this machine, where no Docker is needed. Each stage is a
// directory; commands run in it, files are copied as .dockerignore allows, and what the images would start is
// started, as a user without rights when we may choose one, asked for its health, used, and stopped.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { freePort } from '../support/redis.ts'
import {
  type Instruction,
  ignores,
  parseDockerfile,
  read,
  root,
  variablesOf,
  wordsOf,
} from './dockerfile.ts'

const ignored = ignores(await read('.dockerignore'))
const stages = parseDockerfile(await read('Dockerfile'))
const place = mkdtempSync(join(tmpdir(), 'handrail-image-'))
/** Stands for the user `node` of the image. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
const names = { PATH: process.env.PATH, HOME: place }

interface Image {
  directory: string
  workdir: string
  env: Record<string, string>
  last: Map<string, Instruction>
}

const images = new Map<string, Image>()

function play({ name, from, instructions }: (typeof stages)[0]): Image {
  const directory = join(place, name || 'image')
  const image: Image = { directory, workdir: directory, env: {}, last: new Map() }
  mkdirSync(directory)
  const base = images.get(from)
  if (base) {
    cpSync(base.directory, directory, { recursive: true, verbatimSymlinks: true })
    image.workdir = join(directory, relative(base.directory, base.workdir))
    Object.assign(image.env, base.env)
  }
  for (const one of instructions) {
    console.log(`${name || 'image'}: ${one.name} ${one.text}`)
    image.last.set(one.name, one)
    if (one.name === 'WORKDIR') {
      image.workdir = join(directory, one.text)
      mkdirSync(image.workdir, { recursive: true })
    } else if (one.name === 'ENV') Object.assign(image.env, variablesOf(one))
    else if (one.name === 'COPY') copy(image, one)
    else if (one.name === 'RUN') run(image, one.text)
  }
  return image
}

function copy({ workdir }: Image, { flags, text }: Instruction): void {
  const from = flags.from === undefined ? root : images.get(flags.from)!.directory
  const paths = text.split(/\s+/)
  const to = join(workdir, paths.pop()!)
  const filter = (path: string) => flags.from !== undefined || !ignored(relative(root, path))
  for (const path of paths) {
    // Of a directory all that is in it is copied, not the directory.
    const into = to.endsWith('/') && !statSync(join(from, path)).isDirectory()
    cpSync(join(from, path), into ? join(to, basename(path)) : to, { recursive: true, filter })
  }
}

/** What is at the top of the image is at the top of its directory, and nobody else's file is touched. */
function run({ directory, workdir, env }: Image, command: string): void {
  const here = command
    .replaceAll(/(?<= )\/(?=\w)/g, `${directory}/`)
    .replaceAll(
      'chown node:node',
      user.uid === undefined ? 'test -d' : `chown ${user.uid}:${user.gid}`,
    )
  execFileSync('sh', ['-ec', here], { cwd: workdir, env: { ...names, ...env }, stdio: 'inherit' })
}

/** Starts what the image starts, and does something with it when it is healthy. */
async function start(
  { directory, workdir, env, last }: Image,
  more: Record<string, string>,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const [command, ...args] = ['ENTRYPOINT', 'CMD'].flatMap((name) => wordsOf(last.get(name)!.text))
  const inside = Object.fromEntries(
    Object.entries(env).map(([key, value]) => [key, value.replace(/^\//, `${directory}/`)]),
  )
  const PORT = String(await freePort())
  const options = { cwd: workdir, env: { ...names, ...inside, PORT, ...more }, ...user }
  const server = spawn(command!, args, { ...options, stdio: 'inherit' })
  const exited = once(server, 'exit')
  try {
    const check = last.get('HEALTHCHECK')!.text.replace(/^CMD /, '')
    const [healthy, ...words] = wordsOf(check)
    for (let tries = 0; ; tries++) {
      const [code] = (await once(spawn(healthy!, words, options), 'exit')) as [number]
      if (code === 0) break
      if (tries > 60 || server.exitCode !== null) throw new Error('it did not become healthy')
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    await use(`http://127.0.0.1:${PORT}`)
    server.kill('SIGTERM')
    const [code] = await exited
    // Next closes its door and then names the signal.
    if (code !== 0 && code !== 143) throw new Error(`it ended with ${code} after SIGTERM`)
  } finally {
    server.kill('SIGKILL')
  }
}

const authorization = 'Bearer of-the-image-alone'

/** The same chat, by the server's address or by the page's. */
async function chat(url: string): Promise<void> {
  const answer = await fetch(`${url}/chats/image/interactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization },
    body: JSON.stringify({ user_message: 'What can you do?' }),
    signal: AbortSignal.timeout(60_000),
  })
  if (!(await answer.text()).includes('"status":"COMPLETED"')) throw new Error('no answer')
}

const size = ({ directory }: Image) =>
  execFileSync('du', ['-sm', directory], { encoding: 'utf8' }).split('\t')[0]

try {
  execFileSync('chmod', ['755', place])
  for (const stage of stages) images.set(stage.name, play(stage))
  const image = images.get('')!
  const page = images.get('page')!
  if (user.uid !== undefined) chownSync(join(image.directory, 'data'), user.uid, user.gid)
  await start(image, { HANDRAIL_API_KEYS: 'of-the-image-alone=ann' }, async (url) => {
    await chat(url)
    await start(page, { HANDRAIL_URL: url }, async (web) => {
      const html = await (await fetch(web)).text()
      if (!html.includes('<title>Handrail')) throw new Error('the page is not there')
      await chat(`${web}/api/copilotkit`)
    })
  })
  console.log(
    `the images' steps work: healthy, answered, stopped by SIGTERM; ${size(image)} MB besides Node, the page ${size(page)} MB`,
  )
} finally {
  rmSync(place, { recursive: true, force: true })
}
