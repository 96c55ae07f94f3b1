import { toJsxRuntime } from 'hast-util-to-jsx-runtime'
import { common, createLowlight } from 'lowlight'
import type { ReactNode } from 'react'
import { Fragment, jsx, jsxs } from 'react/jsx-runtime'

const lowlight = createLowlight(common)
const longest = 50_000 // characters; more would be felt

export function highlight(text: string, language: string): ReactNode {
  if (!lowlight.registered(language) || text.length > longest) return text
  return toJsxRuntime(lowlight.highlight(language, text), { Fragment, jsx, jsxs })
}
