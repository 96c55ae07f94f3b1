import type { openApi } from './openapi.ts'

type Document = Awaited<ReturnType<typeof openApi>>

const html = (text: string) =>
  text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!)

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { margin-bottom: 0 } details { border: 1px solid #8886; border-radius: .5rem; margin: .5rem 0 }
summary { padding: .6rem .8rem; cursor: pointer } summary code { font-size: 1rem }
.get { color: #1a7f37 } .post { color: #0969da } .delete { color: #cf222e }
section { padding: 0 .8rem .8rem } pre { overflow: auto; background: #8881; padding: .6rem }
table { border-collapse: collapse } td { padding: .1rem .8rem .1rem 0; vertical-align: top }`

/** A page for the OpenAPI document that needs no script and asks no other host for anything. */
export function docsPage(document: Document): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => operation(method, path, one as Operation)),
  )
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Handrail API</title>
<meta name="viewport" content="width=device-width"><style>${style}</style>
<h1>Handrail API</h1><p>${html(document.info.description)} Version ${html(document.info.version)}.
The same as <a href="openapi.json">an OpenAPI document</a>.</p>${operations.join('')}</html>`
}

interface Operation {
  summary: string
  parameters?: { name: string; in: string; description?: string; required?: boolean }[]
  requestBody?: { content: Record<string, { schema: object }> }
  responses: Record<string, { description: string }>
}

function operation(method: string, path: string, one: Operation): string {
  const parameters = (one.parameters ?? []).map(
    (p) => `<tr><td><code>${html(p.name)}</code><td>${p.in}${p.required ? ', required' : ''}
<td>${html(p.description ?? '')}`,
  )
  const body = one.requestBody?.content['application/json']?.schema
  const responses = Object.entries(one.responses).map(
    ([status, { description }]) => `<tr><td>${status}<td>${html(description)}`,
  )
  return `<details><summary><code class="${method}">${method.toUpperCase()}</code>
<code>${html(path)}</code> ${html(one.summary)}</summary><section>
${parameters.length > 0 ? `<h3>Parameters</h3><table>${parameters.join('')}</table>` : ''}
${body ? `<h3>Body</h3><pre>${html(JSON.stringify(body, null, 2))}</pre>` : ''}
<h3>Answers</h3><table>${responses.join('')}</table></section></details>`
}
