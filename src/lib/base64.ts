/**
 * Whether the text is padded base64 as in RFC 4648. Decoding skips invalid characters and is many times faster
 * than a pattern, so the number of decoded bytes decides.
 */
export function isBase64(text: string): boolean {
  if (text.length % 4 !== 0 || text.includes('-') || text.includes('_')) return false
  if (Buffer.byteLength(text) !== text.length) return false // decoding keeps the low byte of other letters
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return Buffer.from(text, 'base64').length === (text.length / 4) * 3 - padding
}

/** What an address holds that is the thing itself: `data:image/png;base64,...`. */
export function insideOf(url: string): { mediaType: string; data: string } | undefined {
  const comma = url.indexOf(',')
  if (comma < 0 || !/^data:/i.test(url)) return undefined
  const about = url.slice('data:'.length, comma)
  const mediaType = about.split(';', 1)[0]!
  if (mediaType === '' || !/;base64$/i.test(about.slice(-';base64'.length))) return undefined
  return { mediaType, data: url.slice(comma + 1) }
}
