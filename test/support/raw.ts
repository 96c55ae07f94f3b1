import { request } from 'node:http'

export interface RawRequest {
  method?: string
  /** Sent as it is: nothing is normalised or encoded. */
  path: string
  headers?: Record<string, string>
  body?: string | Buffer | readonly (string | Buffer)[]
}

/** One HTTP request, byte for byte as a hostile client would send it. */
export function raw(url: string, { method = 'GET', path, headers, body }: RawRequest) {
  const { hostname, port } = new URL(url)
  return new Promise<{ status: number; headers: Record<string, unknown>; text: string }>(
    (resolve, reject) => {
      const out = request({ hostname, port, method, path, headers, agent: false }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        )
        response.on('error', reject)
      })
      out.on('error', reject)
      if (Array.isArray(body)) for (const part of body) out.write(part)
      else if (body !== undefined) out.write(body)
      out.end()
    },
  )
}
