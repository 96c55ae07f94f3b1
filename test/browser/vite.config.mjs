import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

/** The pages that the README prints, with the server and the thread of the test. */
const readme = {
  name: 'readme',
  load(id) {
    const block = [
      ['page/readme-page.tsx', /```tsx\n(.*?)```/s],
      ['old/readme-page.tsx', /```jsx\n(.*?)```/s],
    ].find(([file]) => id === here(file))?.[1]
    if (!block) return null
    const [, page] = block.exec(readFileSync(here('../../README.md'), 'utf8'))
    const query = "import { runtimeUrl, threadId } from '../page/query.ts'\n"
    const there = page
      .replace('runtimeUrl="http://localhost:8000/copilotkit"', 'runtimeUrl={runtimeUrl}')
      .replace('threadId="my-first-thread"', 'threadId={threadId}')
    return query + there
  },
}

/** Pages of `old` find the client of the old generation in a node_modules of their own. */
const pages = [
  ...['page/v1.html', 'page/v2.html', 'page/readme.html'],
  ...['old/index.html', 'old/readme.html'],
]

export default defineConfig({
  root: here('.'),
  base: './',
  resolve: { alias: { 'react-syntax-highlighter': here('page/plain-code.tsx') } },
  plugins: [readme],
  logLevel: 'error',
  build: {
    outDir: here('dist'),
    emptyOutDir: true,
    chunkSizeWarningLimit: 100_000,
    rolldownOptions: { input: pages.map((page) => here(page)) },
  },
})
