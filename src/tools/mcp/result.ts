/** What a server answers to a call; we read what we know of it. */
export interface CallResult {
  content?: readonly Record<string, unknown>[]
  structuredContent?: unknown
  isError?: boolean
}

/** The result as text for the model; what is not text is described. */
export function textOfResult({ content = [], structuredContent }: CallResult): string {
  const texts = content.map(textOfBlock).filter((text) => text !== '')
  if (texts.length > 0) return texts.join('\n')
  return structuredContent === undefined ? '' : JSON.stringify(structuredContent)
}

function textOfBlock(block: Record<string, unknown>): string {
  const { type, text, data, mimeType = 'unknown type', uri, name, resource } = block
  switch (type) {
    case 'text':
      return String(text ?? '')
    case 'image':
    case 'audio':
      return `(${type}, ${mimeType}, ${sizeOf(data)}; not shown)`
    case 'resource_link':
      return `(resource ${name ?? ''} at ${uri})`
    case 'resource': {
      const held = (resource ?? {}) as Record<string, unknown>
      if (typeof held.text === 'string') return held.text
      return `(resource ${held.uri}, ${held.mimeType ?? 'unknown type'}, ${sizeOf(held.blob)}; not shown)`
    }
    default:
      return `(${String(type)})`
  }
}

/** Of base64. */
function sizeOf(data: unknown): string {
  const bytes = typeof data === 'string' ? Math.floor((data.length * 3) / 4) : 0
  return bytes < 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024)} KB`
}
