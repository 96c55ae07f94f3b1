'use client'

import { memo, useId, useMemo } from 'react'
import ReactMarkdown, { type Components, type Options } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { blocksOf } from './blocks.ts'
import { CodeBlock } from './code-block.tsx'

/** Words of a model. Only the block that is being written is read again when more of it comes. */
export function Markdown({ text, live }: { text: string; live: boolean }) {
  const blocks = blocksOf(text)
  const prefix = useId().replace(/\W/g, '')
  return (
    <div className="prose">
      {blocks.map((block, i) => (
        <Block key={i} text={block} prefix={prefix} live={live && i === blocks.length - 1} />
      ))}
    </div>
  )
}

const Block = memo(function Block(props: { text: string; prefix: string; live: boolean }) {
  const { text, prefix, live } = props
  // Footnotes are called by number: those of another answer must not be meant.
  const names = useMemo(
    (): Options['remarkRehypeOptions'] => ({
      clobberPrefix: `${prefix}-`,
      footnoteLabelProperties: { className: ['visually-hidden'] },
    }),
    [prefix],
  )
  return (
    <ReactMarkdown
      remarkPlugins={plugins}
      remarkRehypeOptions={names}
      components={live ? writing : written}
    >
      {text}
    </ReactMarkdown>
  )
})

const plugins = [remarkGfm]

const common: Components = {
  // Of another host nothing is loaded: whoever serves an image would learn who reads.
  img: ({ src, alt }) => (
    <Outside href={String(src ?? '')}>Image: {alt || String(src ?? '')}</Outside>
  ),
  a: ({ node: _, href = '', children, ...rest }) =>
    'data-footnote-ref' in rest || 'data-footnote-backref' in rest ? (
      <a href={href} {...rest}>
        {children}
      </a>
    ) : (
      <Outside href={href}>{children}</Outside>
    ),
  // Of a list of things to do.
  input: ({ checked }) => (
    <input
      type="checkbox"
      checked={checked === true}
      disabled
      aria-label={checked ? 'Done' : 'Not done'}
    />
  ),
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

const outward = new Set(['http:', 'https:', 'mailto:'])

/** A link that leads somewhere else. What does not, or only from where the model thinks it is, is just words. */
function Outside({ href, children }: { href: string; children: React.ReactNode }) {
  const to = URL.canParse(href) ? new URL(href) : undefined
  if (!to || !outward.has(to.protocol)) return <>{children}</>
  const title = to.host === '' ? undefined : `Opens ${to.host}`
  return (
    <a href={href} target="_blank" rel="noreferrer noopener" title={title}>
      {children}
    </a>
  )
}
