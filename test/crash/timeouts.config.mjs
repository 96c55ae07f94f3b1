// The server under test: what it may write is asked about, for as long and with the end that the test says.
import { defineConfig } from '../../dist/index.js'

const { ASK_TIMEOUT = '1500', AT_TIMEOUT = 'reject' } = process.env

export default defineConfig({
  policy: [
    { tool: 'write_file', decision: 'ask', timeout: Number(ASK_TIMEOUT), atTimeout: AT_TIMEOUT },
  ],
})
