import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/** A failure already put into a sentence for the reader: printed without a stack. */
export class Stop extends Error {
  constructor(sentence, code = 1) {
    super(sentence)
    this.code = code
  }
}

/** Runs a script's main function; its result is the exit code. */
export async function main(body) {
  try {
    process.exitCode = await body()
  } catch (error) {
    console.error(error instanceof Stop ? error.message : error)
    process.exitCode = error instanceof Stop ? error.code : 1
  }
}

export const elapsed = (since) => `${((Date.now() - since) / 1000).toFixed(1)} s`

/** Runs a command that talks to the reader itself. Resolves to its exit code and, when someone
 *  asked us to stop meanwhile, to that signal: the caller should not go on to the next step. */
export function run(command, args, options = {}) {
  const { onSpawn, ...rest } = options
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', ...rest })
    let asked
    const forward = (signal) => {
      asked = signal
      // A terminal sends Ctrl-C to the whole group: passing it on would deliver it twice.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    }
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
    for (const signal of signals) process.on(signal, forward)
    const watch = setInterval(() => {
      if (orphaned() && !asked) forward('SIGTERM')
    }, 250)
    const settle = () => {
      clearInterval(watch)
      for (const signal of signals) process.off(signal, forward)
    }
    child.once('error', (error) => {
      settle()
      reject(new Stop(`Could not run ${command}: ${error.message}.`))
    })
    child.once('close', (code, died) => {
      settle()
      resolve({ code: code ?? exitCodeOf(died), asked })
    })
    onSpawn?.(child)
  })
}

// A SIGTERM to npm ends the shell between npm and us and reaches nobody else: under npm, losing
// our parent is the order to stop.
const parent = process.ppid
const orphaned = () => process.env.npm_lifecycle_event !== undefined && process.ppid !== parent

/** Runs a command quietly behind a line that counts seconds; what it printed is shown only when
 *  it fails, followed by the sentence `otherwise`. */
export async function chore(label, command, args, { otherwise, onSpawn, ...options }) {
  const since = Date.now()
  const printed = []
  const progress = showProgress(label, since)
  const { code, asked } = await run(command, args, {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
    onSpawn(child) {
      child.stdout.on('data', (chunk) => printed.push(chunk))
      child.stderr.on('data', (chunk) => printed.push(chunk))
      onSpawn?.(child)
    },
  }).finally(progress.end)
  if (asked) throw new Stop(`Stopped while ${label}.`, exitCodeOf(asked))
  if (code !== 0) {
    process.stderr.write(Buffer.concat(printed))
    throw new Stop(otherwise)
  }
  console.error(`${label}: done in ${elapsed(since)}`)
}

export const exitCodeOf = (signal) => 128 + (constants.signals[signal] ?? 0)

// One line rewritten in place on a terminal; elsewhere (CI logs) a line now and then.
function showProgress(label, since) {
  const tty = process.stderr.isTTY
  if (!tty) console.error(`${label} ...`)
  const draw = () => {
    const line = `${label} ... ${Math.round((Date.now() - since) / 1000)} s`
    process.stderr.write(tty ? `\r${line}` : `${line}\n`)
  }
  const timer = setInterval(draw, tty ? 1000 : 15_000)
  if (tty) draw()
  return {
    end() {
      clearInterval(timer)
      if (tty) process.stderr.write('\r\x1b[K')
    },
  }
}
