import { defineConfig } from 'vitest/config'

/** `npm run test:live`: real providers, for whoever has keys. */
export default defineConfig({
  test: {
    include: ['test/live/*.live.ts'],
    testTimeout: 120_000,
    passWithNoTests: true,
    watch: false,
  },
})
