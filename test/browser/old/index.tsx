import '@copilotkit/react-ui/styles.css'
import '../page/page.css'
import { CopilotKit, useCopilotAction } from '@copilotkit/react-core'
import { CopilotChat } from '@copilotkit/react-ui'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { changeBackground } from '../page/background.ts'
import { runtimeUrl, threadId } from '../page/query.ts'
import { SeatCard } from '../page/seat.tsx'
import { ApprovalAction, ApprovalInterrupt } from './approvals.tsx'
import { Extras, Suggestions } from './extras.tsx'
import { Shelf } from './shelf.tsx'

/** `agent`: the page is locked to it. `asks`: how the page wants to be asked, by an `action` or an
 *  `interrupt`. `shelf`, `extras`, `suggestions`: more of the page. `console`: the client's own banners. */
const query = new URLSearchParams(window.location.search)
const agent = query.get('agent') ?? undefined
const asks = query.get('asks')

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
  return (
    <CopilotChat
      labels={{ title: 'Chat', initial: '' }}
      renderError={({ message, onDismiss }) => (
        <p role="alert">
          {message}{' '}
          <button type="button" onClick={onDismiss}>
            Dismiss
          </button>
        </p>
      )}
    />
  )
}

function Page() {
  return (
    <CopilotKit
      runtimeUrl={runtimeUrl}
      threadId={threadId}
      agent={agent}
      showDevConsole={query.has('console')}
    >
      {asks === 'action' && <ApprovalAction />}
      {asks === 'interrupt' && <ApprovalInterrupt />}
      {(agent === 'librarian' || query.has('shelf')) && <Shelf />}
      <main>
        <header>
          CopilotKit 1.10.6, {agent === undefined ? 'no agent session' : `locked to ${agent}`}
        </header>
        {query.has('extras') && <Extras />}
        {query.has('suggestions') && <Suggestions />}
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
