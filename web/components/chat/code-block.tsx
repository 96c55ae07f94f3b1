'use client'

import { type ReactNode, useEffect, useState } from 'react'
import { CopyButton } from '../ui/copy-button.tsx'

/** Code with its language and a way to copy it; coloured once it is whole. */
export function CodeBlock(props: { text: string; language: string | undefined; live: boolean }) {
  const { text, language, live } = props
  const coloured = useColours(text, language, live)
  return (
    <figure className="code">
      <figcaption>
        {language ?? 'text'} <CopyButton text={text} label="Copy the code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre tabIndex={0}>
        <code>{coloured ?? text}</code>
      </pre>
    </figure>
  )
}

/** The highlighter is loaded when the first code is seen. */
function useColours(text: string, language: string | undefined, live: boolean): ReactNode {
  const [coloured, setColoured] = useState<{ text: string; nodes: ReactNode }>()
  useEffect(() => {
    if (live || language === undefined) return
    let wanted = true
    import('./highlight.ts')
      .then(({ highlight }) => {
        if (wanted) setColoured({ text, nodes: highlight(text, language) })
      })
      .catch(() => {}) // without the highlighter the code is shown in one colour
    return () => {
      wanted = false
    }
  }, [text, language, live])
  return coloured?.text === text ? coloured.nodes : undefined
}
