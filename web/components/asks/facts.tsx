'use client'

import { recommendationIn } from '../../lib/analysis.ts'
import type { Card, Shown, WholeApproval } from '../../lib/shapes.ts'
import { RecommendationView } from '../analysis/recommendation.tsx'
import { CopyButton } from '../ui/copy-button.tsx'

const risks = { low: 'Low risk', medium: 'Medium risk', high: 'High risk' }

/** What there is to judge by. All of it was made by the server from the real arguments, but the model's words. */
export function Facts({ approval }: { approval: WholeApproval }) {
  const { card, input, owner, chat_id } = approval
  const { target, risk, preview, said, tool, server, agent, evidence } = card
  const recommendation = recommendationIn(input)
  return (
    <>
      {recommendation && <RecommendationView recommendation={recommendation} />}
      <dl className="facts">
        {target !== undefined && <Fact name="Target" value={target} mono />}
        {tool !== undefined && (
          <Fact name="Tool" value={server === undefined ? tool : `${tool} of ${server}`} mono />
        )}
        {agent !== undefined && <Fact name="Agent" value={agent} />}
        {chat_id === undefined && <Fact name="Chat of" value={owner} />}
        {evidence !== undefined && <Fact name="Known" value={JSON.stringify(evidence)} mono />}
        {risk && (
          <div>
            <dt>Risk</dt>
            <dd>
              <span className="risk" data-level={risk.level}>
                {risks[risk.level]}
              </span>{' '}
              {risk.why}
            </dd>
          </div>
        )}
      </dl>
      {typeof preview?.text === 'string' && <Preview preview={preview} />}
      {said && (
        <figure className="model-said">
          <figcaption>What the model says about it (not checked)</figcaption>
          <blockquote>{said.text}</blockquote>
          <Cut shown={said} />
        </figure>
      )}
      {input !== null && approval.kind !== 'budget' && approval.kind !== 'input' && (
        <Exact card={card} input={input} />
      )}
    </>
  )
}

function Fact(props: { name: string; value: string; mono?: boolean }) {
  const { name, value, mono } = props
  return (
    <div>
      <dt>{name}</dt>
      <dd>{mono ? <code>{value}</code> : value}</dd>
    </div>
  )
}

function Preview({ preview }: { preview: NonNullable<Card['preview']> }) {
  const lines = preview.text.split('\n')
  const names = { diff: 'What changes', code: 'Code', text: 'Preview' }
  return (
    <figure className="ask-preview">
      <figcaption>{names[preview.kind]}</figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre tabIndex={0} data-kind={preview.kind}>
        {preview.kind === 'diff'
          ? lines.map((line, i) => (
              <span key={i} className="line" data-side={line[0]}>
                {line}
                {'\n'}
              </span>
            ))
          : preview.text}
      </pre>
      <Cut shown={preview} />
    </figure>
  )
}

function Cut({ shown: { cut } }: { shown: Shown }) {
  if (!cut) return null
  return <p className="cut">{cut.toLocaleString()} more characters are not shown here.</p>
}

/** The very arguments, whole, however long they are. */
function Exact({ card, input }: { card: Card; input: unknown }) {
  const text = JSON.stringify(input, null, 2)
  return (
    <details className="exact">
      <summary>Exact arguments</summary>
      {card.arguments && card.arguments.length > 0 && (
        <ul className="argument-lines" aria-label="Arguments, with what cannot be seen written out">
          {card.arguments.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <div className="tool-field">
        <p>
          As JSON, all of it <CopyButton text={text} label="Copy the arguments" />
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
        <pre tabIndex={0}>{text}</pre>
      </div>
    </details>
  )
}
