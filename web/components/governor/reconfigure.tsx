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
  return <Reconfigure askId={askId} args={args} onDecided={() => view?.link?.refresh()} />
}

/** The question for more budget, while it is open. */
export function Reconfigure(props: {
  askId: string
  args: ReconfigureArgs
  onDecided: () => void
}) {
  const { askId, args, onDecided } = props
  const { ready, decide, problem } = useDecide({ id: askId, digest: undefined }, onDecided)
  return (
    <HITLReconfigurePrompt
      args={args}
      problem={problem}
      onContinue={ready ? (decision) => void decide(decision, 'It goes on.') : undefined}
      onStop={ready ? () => void decide({ stop: true }, 'Stopped.') : undefined}
    />
  )
}
