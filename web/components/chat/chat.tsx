'use client'

import { useEffect, useMemo, useState } from 'react'
import { isRunning } from '../../lib/link/state.ts'
import { useRuntime } from '../../lib/runtime.tsx'
import { type ThreadView, useLink } from '../../lib/use-link.ts'
import { useReconfigure } from '../governor/reconfigure.tsx'
import { useListed } from '../threads/use-listed.ts'
import { Composer } from './composer.tsx'
import { ChatHeader } from './header.tsx'
import { Messages } from './messages.tsx'
import { turnsOf } from './turns.ts'
import { useNews } from './use-news.ts'
import { ViewContext } from './view-context.ts'
import { Welcome } from './welcome.tsx'

/** One chat, at its own address. */
export function Chat({ threadId }: { threadId: string }) {
  const { agents } = useRuntime()
  const [chosen, setChosen] = useState<string>()
  const agentId = chosen ?? agents[0]?.name ?? 'default'
  const view = useLink(threadId, agentId)
  useThreadAgent(view, chosen, setChosen, agents[0]?.name)
  useNews(view)
  useReconfigure()
  useListed(view)
  const turns = useMemo(() => turnsOf(view.messages), [view.messages])
  const begun = view.outline !== undefined && view.outline.turns.length > 0
  const name = view.outline?.name || (begun ? 'Untitled chat' : 'New chat') // an image alone gives none
  useEffect(() => {
    const waits = view.outline?.status === 'waiting' ? '● ' : ''
    document.title = `${waits}${name} · Handrail`
  }, [name, view.outline?.status])
  return (
    <ViewContext.Provider value={view}>
      <div className="chat">
        <ChatHeader
          threadId={threadId}
          view={view}
          name={name}
          agentId={agentId}
          agents={agents}
          onAgent={setChosen}
        />
        {turns.length === 0 ? (
          <Welcome view={view} agent={agents.find((one) => one.name === agentId)} />
        ) : (
          <Messages threadId={threadId} view={view} turns={turns} />
        )}
        <Composer key={threadId} threadId={threadId} view={view} running={isRunning(view)} />
      </div>
    </ViewContext.Provider>
  )
}

/** A chat goes on with the agent it was last held with, until another is chosen. */
function useThreadAgent(
  { outline, link }: ThreadView,
  chosen: string | undefined,
  choose: (agent: string) => void,
  first: string | undefined,
) {
  const agent = outline?.turns.at(-1)?.agent ?? outline?.agent
  useEffect(() => {
    if (link && chosen === undefined && agent !== undefined && agent !== first) choose(agent)
  }, [link, chosen, agent, first, choose])
}
