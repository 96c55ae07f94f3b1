import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  root: here('page'),
  base: './',
  logLevel: 'error',
  build: {
    outDir: here('dist'),
    emptyOutDir: true,
    minify: false, // readable stacks, and quicker
    chunkSizeWarningLimit: 100_000,
    rolldownOptions: { input: { v1: here('page/v1.html'), v2: here('page/v2.html') } },
  },
})
