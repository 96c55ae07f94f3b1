'use client'

import type { Message } from '@ag-ui/client'
import { useAgent, useCopilotKit } from '@copilotkit/react-core/v2/headless'
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { Link } from './link/link.ts'
import { initial, type LinkState } from './link/state.ts'

export interface ThreadView extends LinkState {
  messages: readonly Message[]
  link: Link | undefined
  /** What the agent says of where it is, as the server last told it. */
  agentState: unknown
}

const none = () => () => {}

/** A thread as it is, and ways to change it. */
export function useLink(threadId: string, agentId: string): ThreadView {
  const { copilotkit } = useCopilotKit()
  const { agent, isReady } = useAgent({
    agentId: `thread:${threadId}`,
    runtimeAgentId: agentId,
    threadId,
  })
  const [link, setLink] = useState<Link>()
  useEffect(() => {
    if (!isReady) return
    const opened = new Link(copilotkit, agent, agentId, threadId)
    const close = opened.open()
    setLink(opened)
    return () => {
      close()
      setLink(undefined)
    }
  }, [copilotkit, agent, isReady, agentId, threadId])
  const state = useSyncExternalStore(
    link?.subscribe ?? none,
    link?.get ?? (() => initial),
    () => initial,
  )
  const { messages: held, state: agentState } = agent
  const messages = useMemo(() => [...state.earlier, ...held], [state.earlier, held])
  return { ...state, messages: useShown(messages, state, threadId), link, agentState }
}

/**
 * CopilotKit clears its list when it connects for the first time. Until the server's list is here, what was
 * seen stays to be seen, and what is being filled in with it.
 */
function useShown(messages: readonly Message[], state: LinkState, threadId: string) {
  const shown = useRef({ messages, threadId })
  const known = state.outline !== undefined && state.outline.turns.length > 0
  const cleared = known && messages.length === 0 && shown.current.threadId === threadId
  if (!cleared) shown.current = { messages, threadId }
  return shown.current.messages
}
