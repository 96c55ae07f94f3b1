#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'

/**
 * After seconds with little to do V8 gives memory back, and with it what it had learnt of our code: whoever
 * came next waited a third longer (decision 33). So long in milliseconds it waits instead; a timer knows no more.
 */
const quiet = 2 ** 31 - 1

// Heard only before anything else is loaded. A Node that does not know it would complain.
if (Number.parseInt(process.versions.node, 10) <= 24)
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${quiet}`)

const { cli } = await import('./cli.ts')
process.exit(await cli(process.argv.slice(2)))
