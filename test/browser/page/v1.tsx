import '@copilotkit/react-ui/styles.css'
import './page.css'
import { CopilotKit, useCopilotAction, useLangGraphInterrupt } from '@copilotkit/react-core'
import { CopilotChat } from '@copilotkit/react-ui'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { changeBackground } from './background.ts'
import { type Approval, ApprovalCard } from './card.tsx'
import { runtimeUrl, threadId } from './query.ts'
import { SeatCard } from './seat.tsx'

function Chat() {
  useCopilotAction({
    name: 'change_background',
    description: 'Changes the background of the page.',
    parameters: [{ name: 'color', type: 'string', required: true }],
    handler: async ({ color }) => changeBackground(color),
  })
  useCopilotAction({
    name: 'choose_seat',
    description: 'Lets the user choose a seat.',
    parameters: [{ name: 'row', type: 'number', required: true }],
    renderAndWaitForResponse: ({ args, result, respond }) => (
      <SeatCard row={args.row} chosen={result} choose={respond && ((seat) => respond(seat))} />
    ),
  })
  useLangGraphInterrupt<Approval>({
    render: ({ event: { value }, resolve }) => (
      // The hook's type says string; what it is given travels as it is.
      <ApprovalCard
        key={value.id}
        approval={value}
        decide={(decision) => resolve(decision as unknown as string)}
      />
    ),
  })
  return <CopilotChat labels={{ title: 'Chat', initial: '' }} />
}

function Page() {
  return (
    <CopilotKit runtimeUrl={runtimeUrl} threadId={threadId} enableInspector={false}>
      <main>
        <Chat />
      </main>
    </CopilotKit>
  )
}

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Page />
  </StrictMode>,
)
