import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

/** A Postgres of its own, on loopback, gone with the process that started it whatever happens to it. */
export interface Postgres {
  url: string
  port: number
  /** As a crash: connections are cut, nothing is tidied up. */
  crash(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** Waits at the end for its input to close: that happens also when we are killed. */
const script = `
set -e
dir=$(mktemp -d)
trap '"$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
"$bin/initdb" -D "$dir/data" -U app -A trust -E UTF8 --locale=C.UTF-8 --no-sync >/dev/null
cat >> "$dir/data/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$dir'
max_connections = 200
$settings
END
"$bin/pg_ctl" -D "$dir/data" -w -l "$dir/log" start >/dev/null || { cat "$dir/log" >&2; exit 1; }
echo "$dir"
cat >/dev/null
`

const fast = 'fsync = off\nsynchronous_commit = off\nfull_page_writes = off'

export async function startPostgres(settings = fast): Promise<Postgres> {
  const bin = programs()
  const port = await freePort()
  const env = { ...process.env, bin, port: String(port), settings }
  const [command, ...args] = asPostgres(['sh', '-c', script])
  const keeper = spawn(command!, args, { env, cwd: '/', stdio: ['pipe', 'pipe', 'pipe'] })
  const directory = await readyIn(keeper)
  const control = async (...more: string[]) => {
    const [program, ...rest] = asPostgres([join(bin, 'pg_ctl'), '-D', `${directory}/data`, ...more])
    // Its own output must not be ours: the server would keep it open.
    await promisify(execFile)(program!, [...rest, '-l', `${directory}/log`], { cwd: '/' })
  }
  return {
    url: `postgresql://app@127.0.0.1:${port}/postgres`,
    port,
    crash: () => control('-m', 'immediate', '-w', 'stop'),
    start: () => control('-w', 'start'),
    async stop() {
      const gone = once(keeper, 'exit')
      keeper.stdin!.end()
      await gone
    },
  }
}

async function readyIn(keeper: ChildProcess): Promise<string> {
  let output = ''
  let errors = ''
  keeper.stderr!.on('data', (chunk) => {
    errors += chunk
  })
  return await new Promise<string>((resolve, reject) => {
    keeper.stdout!.on('data', (chunk) => {
      output += chunk
      if (output.endsWith('\n')) resolve(output.trim())
    })
    keeper.once('error', reject)
    keeper.once('exit', (code) => reject(new Error(`no Postgres (${code}): ${errors}`)))
  })
}

/** initdb refuses to run as root. */
const asPostgres = (command: string[]) =>
  process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command

/** Debian keeps the programs off the PATH, one folder per version. */
function programs(): string {
  const base = '/usr/lib/postgresql'
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...versions.map((version) => join(base, version, 'bin')),
  ]
  const found = folders.find((folder) => folder !== '' && existsSync(join(folder, 'initdb')))
  if (!found) throw new Error('needs Postgres: install the package postgresql')
  return found
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
