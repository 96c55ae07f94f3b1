import { useCopilotAction, useCopilotReadable } from '@copilotkit/react-core'
import { useCopilotChatSuggestions } from '@copilotkit/react-ui'
import { useState } from 'react'

/** Apart: the client stumbles over a message that comes while it waits for suggestions. */
export function Suggestions() {
  useCopilotChatSuggestions({ instructions: 'Suggest a greeting.', maxSuggestions: 2 })
  return null
}

/** What else a page may register: something to read, an action whose result nobody waits for, and
 *  how calls of the server's own tools look. */
export function Extras() {
  const [dimmed, setDimmed] = useState(0)
  useCopilotReadable({ description: 'The flower on the page', value: 'a peony' })
  useCopilotAction({
    name: 'dim_lights',
    description: 'Dims the lights of the page.',
    followUp: false,
    handler: async () => {
      setDimmed((times) => times + 1)
      return 'dimmed'
    },
  })
  useCopilotAction({
    name: 'count_guests',
    available: 'frontend',
    render: ({ status, result }) => (
      <p className="decided">
        Counting guests: {status}
        {result === undefined ? '' : `, ${result}`}
      </p>
    ),
  })
  return <p className="decided">Dimmed {dimmed} times</p>
}
