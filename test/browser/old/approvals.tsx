import { useCopilotAction, useLangGraphInterrupt } from '@copilotkit/react-core'
import { ApprovalCard } from '../page/card.tsx'

/** What the server says of a question, to this action and in an interrupt. */
interface Asked {
  askId: string
  title?: string
  tool?: string
  input?: Record<string, unknown>
}

const approvalOf = ({ askId, title, tool, input }: Asked) => ({
  id: askId,
  ...(title !== undefined && { message: title }),
  metadata: { ...(tool !== undefined && { tool }), ...(input && { input }) },
})

/** Questions as calls of an action that the server calls by itself. */
export function ApprovalAction() {
  useCopilotAction({
    name: 'approveAction',
    description: 'Asks the user to approve what the agent is about to do.',
    parameters: [
      { name: 'askId', type: 'string', required: true },
      { name: 'kind', type: 'string', required: true },
      { name: 'title', type: 'string', required: true },
      { name: 'tool', type: 'string' },
      { name: 'input', type: 'object' },
    ],
    renderAndWaitForResponse: ({ args, status, result, respond }) => {
      if (status === 'complete') return <Decided title={args.title} result={result} />
      if (!args.askId || !respond) return <p className="decided">A question is on its way.</p>
      const asked = args as Asked
      return (
        <ApprovalCard
          key={asked.askId}
          approval={approvalOf(asked)}
          decide={(decision) => respond(decision)}
        />
      )
    },
  })
  return null
}

function Decided({ title, result }: { title: string; result: unknown }) {
  return (
    <p className="decided">
      {title}: <code>{JSON.stringify(result)}</code>
    </p>
  )
}

/** Questions as interrupts. */
export function ApprovalInterrupt() {
  useLangGraphInterrupt<Asked>({
    render: ({ event: { value }, resolve }) => (
      <ApprovalCard
        key={value.askId}
        approval={approvalOf(value)}
        decide={(decision) => resolve(JSON.stringify(decision))}
      />
    ),
  })
  return null
}
