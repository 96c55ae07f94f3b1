'use client'

import type { ThreadView } from '../../lib/use-link.ts'
import { Markdown } from './markdown.tsx'
import { Reasoning } from './reasoning.tsx'
import { ToolCall } from './tool-call.tsx'
import { callsOf, type ShownTurn } from './turns.ts'

/** Thoughts, words and tools of an answer, in their order. */
export function Answer(props: { turn: ShownTurn; view: ThreadView; live: boolean }) {
  const { turn, view, live } = props
  const { outline, outputs, calls } = view
  return turn.parts.map((part, i) => {
    const current = live && i === turn.parts.length - 1
    if (part.role === 'reasoning')
      return <Reasoning key={part.id} text={part.content} live={current} />
    return (
      <div key={part.id} className="part">
        {part.content && <Markdown text={part.content} live={current} />}
        {callsOf(part).map(({ id, function: { name, arguments: input } }) => (
          <ToolCall
            key={id}
            name={name}
            input={input}
            result={turn.results.get(id)?.content as string | undefined}
            output={outputs[id]}
            standing={calls[id] ?? outline?.calls[id]}
            ask={outline?.asks.find((ask) => ask.callId === id)}
            live={live}
          />
        ))}
      </div>
    )
  })
}
