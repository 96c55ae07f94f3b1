'use client'

import type { AgentInfo } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { Grants } from '../asks/grants.tsx'
import { Meter } from '../governor/meter.tsx'
import { PageHeader } from '../shell/page-header.tsx'
import { Connection } from './connection.tsx'

export function ChatHeader(props: {
  threadId: string
  view: ThreadView
  name: string
  agentId: string
  agents: readonly AgentInfo[]
  onAgent: (agent: string) => void
}) {
  const { threadId, view, name, agentId, agents, onAgent } = props
  return (
    <PageHeader title={name}>
      {view.outline && <Grants key={threadId} outline={view.outline} />}
      <Meter threadId={threadId} view={view} />
      <Connection phase={view.phase} />
      {agents.length > 1 && (
        <label className="agent-picker">
          <span className="visually-hidden">Agent</span>
          <select value={agentId} onChange={(event) => onAgent(event.target.value)}>
            {agents.map((agent) => (
              <option key={agent.name} value={agent.name} title={agent.description}>
                {agent.name}
              </option>
            ))}
          </select>
        </label>
      )}
    </PageHeader>
  )
}
