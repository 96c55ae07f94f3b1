import type { Content } from '../../lib/link/messages.ts'

export interface Attachment {
  id: string
  name: string
  type: string
  /** Base64. */
  data: string
}

export const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** A request may have 4 MiB, and an image grows by a third on its way. */
const largest = 2_500_000

export const tooLarge = ({ size }: File): boolean => size > largest

export function read(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onerror = () => reject(reader.error)
    reader.onload = () => {
      const data = String(reader.result).replace(/^[^,]*,/, '')
      resolve({ id: crypto.randomUUID(), name: file.name || 'image', type: file.type, data })
    }
    reader.readAsDataURL(file)
  })
}

export function contentOf(text: string, images: readonly Attachment[]): Content {
  if (images.length === 0) return text
  return [
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...images.map(({ type: mimeType, data: value }) => ({
      type: 'image' as const,
      source: { type: 'data' as const, value, mimeType },
    })),
  ]
}

/** The images of a message that comes back to be sent again. */
export function attachmentsOf(content: Content): Attachment[] {
  if (typeof content === 'string') return []
  return content.flatMap((part) => {
    if (part.type !== 'image' || part.source.type !== 'data') return []
    const { mimeType: type, value: data } = part.source
    return [{ id: crypto.randomUUID(), name: 'image', type, data }]
  })
}
