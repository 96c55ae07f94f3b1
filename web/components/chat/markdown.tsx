'use client'

import { memo } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { blocksOf } from './blocks.ts'
import { CodeBlock } from './code-block.tsx'

/** Words of a model. Only the block that is being written is read again when more of it comes. */
export function Markdown({ text, live }: { text: string; live: boolean }) {
  const blocks = blocksOf(text)
  return (
    <div className="prose">
      {blocks.map((block, i) => (
        <Block key={i} text={block} live={live && i === blocks.length - 1} />
      ))}
    </div>
  )
}

const Block = memo(function Block({ text, live }: { text: string; live: boolean }) {
  return (
    <ReactMarkdown remarkPlugins={plugins} components={live ? writing : written}>
      {text}
    </ReactMarkdown>
  )
})

const plugins = [remarkGfm]

const common: Components = {
  // Of another host nothing is loaded: whoever serves an image would learn who reads.
  img: ({ src, alt }) =>
    typeof src === 'string' && src.startsWith('data:image/') ? (
      <img src={src} alt={alt ?? ''} />
    ) : (
      <Outside href={String(src ?? '')}>Image: {alt || String(src ?? '')}</Outside>
    ),
  a: ({ href, children }) => <Outside href={href ?? ''}>{children}</Outside>,
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <div className="table" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
}

const withCode = (live: boolean): Components => ({
  ...common,
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children }) => {
    const language = /language-(\S+)/.exec(className ?? '')?.[1]
    const text = String(children ?? '')
    if (language === undefined && !text.includes('\n')) return <code>{text}</code>
    return <CodeBlock text={text.replace(/\n$/, '')} language={language} live={live} />
  },
})

const writing = withCode(true)
const written = withCode(false)

function Outside({ href, children }: { href: string; children: React.ReactNode }) {
  const host = URL.canParse(href) ? new URL(href).host : undefined
  return (
    <a href={href} target="_blank" rel="noreferrer noopener" title={host && `Opens ${host}`}>
      {children}
    </a>
  )
}
