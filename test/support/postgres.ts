import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, realpathSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, dirname, join } from 'node:path'

/** A Postgres of its own, on loopback, gone with the process that started it whatever happens to it. */
export interface Postgres {
  url: string
  port: number
  /** As a crash: connections are cut, nothing is tidied up. */
  crash(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** Does as it is told line by line; when its input closes, also because we were killed, it tidies up. */
const script = `
dir=$(mktemp -d) || exit 1
trap : INT TERM
crash() { kill -QUIT $pid 2>/dev/null; wait $pid 2>/dev/null; }
start() {
  "$bin/postgres" -D "$dir/data" >>"$dir/log" 2>&1 </dev/null & pid=$!
  tries=0
  until "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
    tries=$((tries + 1))
    kill -0 $pid 2>/dev/null && [ $tries -lt 300 ] || { cat "$dir/log" >&2; return 1; }
    sleep 0.05
  done
}
"$bin/initdb" -D "$dir/data" -U app -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$dir/log" &&
cat >> "$dir/data/postgresql.conf" <<END &&
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$dir'
max_connections = 200
$settings
END
start && echo done && while read -r order; do $order; echo done; done
crash
rm -rf "$dir"
`

const fast = 'fsync = off\nsynchronous_commit = off\nfull_page_writes = off'

export async function startPostgres(settings = fast): Promise<Postgres> {
  const bin = programs()
  const port = await freePort()
  const env = { PATH: process.env.PATH, bin, port: String(port), settings }
  const [command, ...args] = asPostgres(['sh', '-c', script])
  const keeper = spawn(command!, args, { env, cwd: '/', stdio: ['pipe', 'pipe', 'pipe'] })
  let errors = ''
  keeper.stderr!.on('data', (chunk) => {
    errors += chunk
  })
  await answerOf(keeper).catch((error: Error) => {
    throw new Error(`${error.message}: ${errors}`)
  })
  const tell = async (order: 'crash' | 'start') => {
    const answered = answerOf(keeper)
    keeper.stdin!.write(`${order}\n`)
    await answered
  }
  return {
    url: `postgresql://app@127.0.0.1:${port}/postgres`,
    port,
    crash: () => tell('crash'),
    start: () => tell('start'),
    async stop() {
      const gone = once(keeper, 'exit')
      keeper.stdin!.end()
      await gone
    },
  }
}

/** Resolves when it has done what it was told. */
async function answerOf(keeper: ChildProcess): Promise<void> {
  const over = new AbortController()
  const gone = once(keeper, 'exit', over).then(() => {
    throw new Error('Postgres did not start')
  })
  gone.catch(() => {})
  try {
    await Promise.race([once(keeper.stdout!, 'data', over), gone])
  } finally {
    over.abort()
  }
}

/** initdb refuses to run as root. */
const asPostgres = (command: string[]) =>
  process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command

/** Where initdb and its siblings are; `npm test` has put that on the PATH. */
function programs(): string {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  const found = folders.find((folder) => existsSync(join(folder, 'initdb')))
  if (!found) throw new Error('needs Postgres: initdb is not on the PATH')
  return dirname(realpathSync(join(found, 'initdb'))) // a link may stand alone, without its siblings
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
