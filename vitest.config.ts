import { configDefaults, defineConfig } from 'vitest/config'

const exclude = [...configDefaults.exclude, '**/dist/**', 'data/**']
const minutes = 60_000
/** In CI a story is told once more before it counts as broken; scripts/test.mjs names those. */
const retry = process.env.CI ? 1 : 0
/** Tests that kill servers. */
const crash = ['test/crash/**', 'test/chaos/**', 'test/clients/soak/**']

export default defineConfig({
  // The file that Node takes: Vite would take another, and there would be two of each class.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    pool: 'forks', // a test that kills or blocks its process must not take others along
    maxWorkers: 2, // tests start servers of their own: more workers would starve those
    watch: false,
    reporters: ['default'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    retry,
    setupFiles: ['test/support/setup.ts'],
    expect: { poll: { timeout: 20_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...exclude, ...crash, 'test/browser/**', 'test/web/**'],
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          exclude,
          globalSetup: 'test/browser/build.ts',
          testTimeout: 1 * minutes,
          hookTimeout: 1 * minutes,
          sequence: { groupOrder: 1 }, // after the unit tests: a browser wants a core to itself
        },
      },
      {
        extends: true,
        test: {
          name: 'web',
          include: ['test/web/**/*.test.ts'],
          exclude,
          globalSetup: 'test/web/build.ts',
          testTimeout: 1 * minutes,
          hookTimeout: 1 * minutes,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'crash',
          include: crash.map((folder) => `${folder}/*.test.ts`),
          exclude,
          retry: 0, // what a seed finds is there
          testTimeout: 15 * minutes,
          hookTimeout: 1 * minutes,
          sequence: { groupOrder: 3 }, // last, with the machine to themselves
        },
      },
    ],
  },
})
