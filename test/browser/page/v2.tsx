import '@copilotkit/react-core/v2/styles.css'
import './page.css'
import {
  CopilotChat,
  CopilotKitProvider,
  useFrontendTool,
  useHumanInTheLoop,
  useInterrupt,
} from '@copilotkit/react-core/v2'
import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { z } from 'zod'
import { changeBackground } from './background.ts'
import { type Approval, ApprovalCard } from './card.tsx'
import { runtimeUrl, threadId } from './query.ts'
import { SeatCard } from './seat.tsx'
import { ThreadList } from './threads.tsx'

function Chat() {
  useFrontendTool({
    name: 'change_background',
    description: 'Changes the background of the page.',
    parameters: z.object({ color: z.string() }),
    handler: async ({ color }) => changeBackground(color),
  })
  useHumanInTheLoop({
    name: 'choose_seat',
    description: 'Lets the user choose a seat.',
    parameters: z.object({ row: z.number() }),
    render: ({ args, result, respond }) => (
      <SeatCard row={args.row} chosen={result} choose={respond && ((seat) => void respond(seat))} />
    ),
  })
  useInterrupt({
    render: ({ interrupts, resolve }) => (
      <>
        {interrupts.map((one) => (
          <ApprovalCard
            key={one.id}
            approval={one as Approval}
            decide={(decision) => void resolve(decision, one.id)}
          />
        ))}
      </>
    ),
  })
  return <CopilotChat threadId={threadId} />
}

function Page() {
  const [problem, setProblem] = useState('')
  return (
    <CopilotKitProvider
      runtimeUrl={runtimeUrl}
      enableInspector={false}
      onError={({ error }) => setProblem(error.message)}
    >
      <ThreadList />
      <main>
        {problem && <p role="alert">{problem}</p>}
        <Chat />
      </main>
    </CopilotKitProvider>
  )
}

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Page />
  </StrictMode>,
)
