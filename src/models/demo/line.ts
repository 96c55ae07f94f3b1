/** What the demo model does, one thing at a time. `slow` lines keep a pace of their own. */
export type Line =
  | { type: 'say'; pieces: string[]; slow?: boolean }
  | { type: 'think'; pieces: string[]; slow?: boolean }
  | { type: 'call'; name: string; input: Record<string, unknown> }
  | { type: 'fail'; message: string }

export const say = (text: string): Line => ({ type: 'say', pieces: wordsOf(text) })
export const think = (text: string): Line => ({ type: 'think', pieces: wordsOf(text) })
export const call = (name: string, input: Record<string, unknown>): Line => ({
  type: 'call',
  name,
  input,
})

/** A few characters at a time, as a provider would send them; joined again they are the text. */
export function wordsOf(text: string): string[] {
  return text.match(/\S{1,12}\s*|\s+/gu) ?? []
}

/** Cuts into about this many pieces, never through a character. */
export function piecesOf(text: string, count: number): string[] {
  const characters = Array.from(text)
  const size = Math.max(1, Math.ceil(characters.length / count))
  const pieces: string[] = []
  for (let at = 0; at < characters.length; at += size) {
    pieces.push(characters.slice(at, at + size).join(''))
  }
  return pieces
}

/** Short enough to repeat. */
export function brief(text: string, most = 200): string {
  const characters = Array.from(text.slice(0, most * 2 + 1))
  return characters.length > most ? `${characters.slice(0, most).join('')}…` : text
}
