'use client'

import { useRenderToolCall } from '@copilotkit/react-core/v2/headless'
import type { Outline } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { Settled } from '../asks/settled.tsx'
import { reconfigureTool } from '../governor/reconfigure.tsx'
import { Markdown } from './markdown.tsx'
import { Reasoning } from './reasoning.tsx'
import { ToolCall } from './tool-call.tsx'
import { callsOf, editOf, type ShownTurn, standingOf } from './turns.ts'

/** Thoughts, words and tools of an answer, in their order. */
export function Answer(props: { turn: ShownTurn; view: ThreadView; live: boolean }) {
  const { turn, view, live } = props
  const { outline, outputs } = view
  const renderCall = useRenderToolCall()
  return turn.parts.map((part, i) => {
    const current = live && i === turn.parts.length - 1
    if (part.role === 'reasoning')
      return <Reasoning key={part.id} text={part.content} live={current} />
    return (
      <div key={part.id} className="part">
        {part.content && <Markdown text={part.content} live={current} />}
        {callsOf(part).map((call) => {
          const {
            id,
            function: { name, arguments: input },
          } = call
          const toolMessage = turn.results.get(id)
          const edit = editOf(outline, id)
          if (name === reconfigureTool)
            return (
              <div key={id}>
                {renderCall({ toolCall: call, ...(toolMessage && { toolMessage }) })}
              </div>
            )
          return (
            <div key={id} className="call">
              <ToolCall
                name={name}
                input={edit ? JSON.stringify(edit.input) : input}
                edited={edit !== undefined}
                result={toolMessage?.content as string | undefined}
                output={outputs[id]}
                standing={standingOf(view, id)}
                ask={outline?.asks.find((ask) => ask.callId === id)}
                held={isHeld(outline, id)}
                instead={isAnswered(outline, id)}
                live={live}
              />
              {outline?.decided
                .filter((ask) => ask.callId === id)
                .map((ask) => (
                  <Settled key={ask.id} ask={ask} />
                ))}
            </div>
          )
        })}
      </div>
    )
  })
}

function isHeld(outline: Outline | undefined, callId: string): boolean {
  const ask = outline?.decided.find((one) => one.callId === callId)
  return outline?.asks.some(({ step }) => step === ask?.step) ?? false
}

/** Somebody gave an answer in the tool's place: it was never called. */
const isAnswered = (outline: Outline | undefined, id: string): boolean =>
  outline?.decided.some(
    ({ callId, kind, state }) => callId === id && kind === 'approval' && state === 'answered',
  ) ?? false
