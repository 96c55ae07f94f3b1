#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'

/**
 * Milliseconds with little to do until V8 gives memory back, and with it what it has learnt of our code: whoever
 * comes next waits a third longer (decision 33). It would take eight seconds; this is the most a timer holds.
 */
const quiet = 2 ** 31 - 1

// Heard only before anything else is loaded. A Node that does not know it would complain.
if (Number.parseInt(process.versions.node, 10) <= 24)
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${quiet}`)

const { cli } = await import('./cli.ts')
process.exit(await cli(process.argv.slice(2)))
