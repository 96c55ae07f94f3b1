import { z } from 'zod'
import { defineTool } from '../../core/tool.ts'
import { createSandbox, type Ending } from './sandbox.ts'
import type { Limits } from './worker.ts'

const defaults: Limits = { memory: 64, time: 5_000, output: 64 * 1024 }

export function runCode(options: Partial<Limits> = {}) {
  const limits = { ...defaults, ...options }
  const sandbox = createSandbox(limits)
  return defineTool({
    name: 'run_code',
    description:
      'Runs JavaScript in a sandbox and gives what it printed with console.log and the value of ' +
      'its last expression. There are no modules, files, network, timers or top-level await.',
    schema: z.strictObject({
      code: z.string().min(1).max(100_000).describe('The JavaScript to run, as one script'),
    }),
    access: 'execute',
    idempotent: true, // nothing outside of the sandbox changes: a cut call is simply run again
    timeout: 10_000, // the time to run, and some to wait for a turn
    describe: ({ code }) => `Run ${linesOf(code)} of JavaScript in a sandbox`,
    target: () => 'a sandbox without files and network',
    risk: () => ({ level: 'medium', why: 'It runs code, in a sandbox without files and network.' }),
    preview: async ({ code }) => ({ kind: 'code', text: code }),
    run: async ({ code }, use) => {
      const write = (text: string) => use.write(text)
      const ending = await sandbox.run({ code, signal: use.signal, write })
      const output = ending.output + cutNote(ending, limits)
      if (ending.type !== 'returned') throw new Error(output + problemOf(ending, limits))
      return output + (ending.text ?? '') || 'The code ran and printed nothing.'
    },
  })
}

function problemOf({ type, text, line }: Ending, { memory, time }: Limits): string {
  if (type === 'timeout') return `The code ran longer than ${time / 1000} s and was stopped.`
  if (type === 'broken') return `The code used up its memory (${memory} MB) or its stack.`
  if (text === 'InternalError: out of memory') return `The code used up its memory (${memory} MB).`
  return line === undefined ? `${text}` : `${text} (line ${line})`
}

function cutNote({ output, cut }: Ending, limits: Limits): string {
  const kept = `${Math.round(limits.output / 1024)} KiB`
  const endsLine = output === '' || output.endsWith('\n')
  if (cut) return `${endsLine ? '' : '\n'}[The rest of the output was cut after ${kept}.]\n`
  return endsLine ? '' : '\n'
}

function linesOf(code: string): string {
  const lines = code.trim().split('\n').length
  return lines === 1 ? '1 line' : `${lines} lines`
}
