'use client'

import { useRenderTool } from '@copilotkit/react-core/v2/headless'
import { z } from 'zod'
import { Settled } from '../asks/settled.tsx'
import { useDecide } from '../asks/use-decide.ts'
import { useView } from '../chat/view-context.ts'
import { HITLReconfigurePrompt, type ReconfigureArgs } from './reconfigure-prompt.tsx'

export const reconfigureTool = 'reconfigureHITL'

/** Shows calls of `reconfigureHITL` as the prompt. The server makes them, and takes an answer from anywhere. */
export function useReconfigure(): void {
  useRenderTool(
    {
      name: reconfigureTool,
      parameters: z.looseObject({}),
      render: ({ toolCallId, parameters, result }) => (
        <InChat askId={toolCallId} args={parameters as ReconfigureArgs} result={result} />
      ),
    },
    [],
  )
}

function InChat(props: { askId: string; args: ReconfigureArgs; result: string | undefined }) {
  const { askId, args, result } = props
  const view = useView()
  const decided = view?.outline?.decided.find(({ id }) => id === askId)
  if (decided) return <Settled ask={decided} />
  if (result !== undefined) return null
  const deadline = view?.outline?.asks.find(({ id }) => id === askId)?.deadline
  return (
    <Reconfigure
      askId={askId}
      args={args}
      deadline={deadline === undefined ? undefined : new Date(deadline).toISOString()}
      onDecided={() => view?.link?.refresh()}
    />
  )
}

/** The question for more budget, while it is open. */
export function Reconfigure(props: {
  askId: string
  args: ReconfigureArgs
  deadline: string | undefined
  onDecided: () => void
}) {
  const { askId, args, deadline, onDecided } = props
  const { ready, decide, problem } = useDecide({ id: askId, digest: undefined }, onDecided)
  return (
    <HITLReconfigurePrompt
      args={args}
      problem={problem}
      deadline={deadline}
      onContinue={ready ? (decision) => void decide(decision, 'It goes on.') : undefined}
      onStop={ready ? () => void decide({ stop: true }, 'Stopped.') : undefined}
    />
  )
}
