/** Everything that the page loads comes from its own server; nothing of another host, whatever a model writes. */
const policy = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline'", // the inline scripts are Next's own start-up data
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const production = process.env.NODE_ENV === 'production'

/** @type {import('next').NextConfig} */
export default {
  output: 'standalone',
  outputFileTracingRoot: import.meta.dirname,
  turbopack: { root: import.meta.dirname },
  poweredByHeader: false,
  devIndicators: false,
  allowedDevOrigins: ['127.0.0.1'],
  async headers() {
    const headers = [
      { key: 'x-content-type-options', value: 'nosniff' },
      { key: 'referrer-policy', value: 'no-referrer' },
      // The reload of `next dev` evaluates what it gets.
      ...(production ? [{ key: 'content-security-policy', value: policy }] : []),
    ]
    return [{ source: '/:path*', headers }]
  },
}
