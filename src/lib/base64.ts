/** Whether it is base64 as RFC 4648 has it, padded: some readers pass over what is not, others refuse all of it. */
export const isBase64 = (text: string): boolean =>
  text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)

/** What an address holds that is the thing itself: `data:image/png;base64,...`. */
export function insideOf(url: string): { mediaType: string; data: string } | undefined {
  const [, mediaType, data] = /^data:([^;,]+)[^,]*;base64,(.*)$/is.exec(url) ?? []
  return mediaType === undefined || data === undefined ? undefined : { mediaType, data }
}
