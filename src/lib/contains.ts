/**
 * Whether a text contains another, in linear time (Knuth, Morris and Pratt). `String.includes` takes the product of
 * both lengths for texts that were made for it.
 */
export function containsText(text: string, part: string): boolean {
  if (part.length > text.length) return false
  const borders = new Uint32Array(part.length)
  for (let i = 1, length = 0; i < part.length; i++) {
    while (length > 0 && part.charCodeAt(i) !== part.charCodeAt(length))
      length = borders[length - 1]!
    if (part.charCodeAt(i) === part.charCodeAt(length)) length++
    borders[i] = length
  }
  let found = 0
  for (let i = 0; found < part.length; i++) {
    if (i === text.length) return false
    while (found > 0 && text.charCodeAt(i) !== part.charCodeAt(found)) found = borders[found - 1]!
    if (text.charCodeAt(i) === part.charCodeAt(found)) found++
  }
  return true
}
