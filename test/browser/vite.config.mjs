import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  root: here('page'),
  base: './',
  resolve: { alias: { 'react-syntax-highlighter': here('page/plain-code.tsx') } },
  logLevel: 'error',
  build: {
    outDir: here('dist'),
    emptyOutDir: true,
    chunkSizeWarningLimit: 100_000,
    rolldownOptions: { input: { v1: here('page/v1.html'), v2: here('page/v2.html') } },
  },
})
