'use client'

import {
  CopilotKitContext,
  CopilotKitCoreReact,
  EMPTY_SET,
} from '@copilotkit/react-core/v2/context'
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react'
import { ApiError, base, getInfo } from './api.ts'
import { keyHeaders, onRefused } from './key.ts'
import { pause } from './link/waiting.ts'
import type { AgentInfo } from './shapes.ts'

export interface RuntimeView {
  /** Agents by their own names, without aliases. The first is the one that is asked by default. */
  agents: AgentInfo[]
}

type Found =
  | { status: 'looking' }
  | { status: 'away'; error: ApiError }
  | { status: 'found'; view: RuntimeView }

const RuntimeContext = createContext<RuntimeView | undefined>(undefined)

/** The runtime that is behind the page, as everything below finds it. */
export function useRuntime(): RuntimeView {
  const view = useContext(RuntimeContext)
  if (!view) throw new Error('useRuntime is for components below <Runtime>')
  return view
}

/** Finds the runtime, as often as it takes, and ties CopilotKit's client to it. */
export function Runtime({
  children,
  fallback,
}: {
  children: ReactNode
  fallback: (error: ApiError | undefined, again: () => void) => ReactNode
}) {
  const [found, setFound] = useState<Found>({ status: 'looking' })
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    const gone = new AbortController()
    void look(gone.signal, setFound)
    return () => gone.abort()
  }, [attempt])
  const known = found.status === 'found'
  // A key may stop working while it is used.
  useEffect(() => {
    if (known) return onRefused(() => setFound({ status: 'away', error: unauthenticated() }))
  }, [known])
  const core = useMemo(() => {
    if (found.status !== 'found') return undefined
    return new CopilotKitCoreReact({
      runtimeUrl: base,
      runtimeTransport: 'rest',
      headers: keyHeaders(),
      defaultThrottleMs: 40,
    } as ConstructorParameters<typeof CopilotKitCoreReact>[0])
  }, [found.status])
  const value = useMemo(() => core && { copilotkit: core, executingToolCallIds: EMPTY_SET }, [core])
  if (found.status !== 'found' || !value)
    return fallback('error' in found ? found.error : undefined, () => setAttempt((n) => n + 1))
  return (
    <CopilotKitContext.Provider value={value}>
      <RuntimeContext.Provider value={found.view}>{children}</RuntimeContext.Provider>
    </CopilotKitContext.Provider>
  )
}

const unauthenticated = () => new ApiError(401, 'unauthenticated', 'The server wants an API key.')

async function look(signal: AbortSignal, tell: (found: Found) => void): Promise<void> {
  for (let tries = 1; !signal.aborted; tries++) {
    try {
      const { agents } = await getInfo(signal)
      const own = Object.entries(agents)
        .filter(([id, { capabilities }]) => (capabilities?.identity?.name ?? id) === id)
        .map(([, agent]) => agent)
      return tell({ status: 'found', view: { agents: own } })
    } catch (problem) {
      if (signal.aborted) return
      const error =
        problem instanceof ApiError ? problem : new ApiError(0, 'unreachable', String(problem))
      tell({ status: 'away', error })
      if (error.status === 401) return // a key has to be given first
      await pause(tries, signal)
    }
  }
}
