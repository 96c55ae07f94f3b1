import type { Runtime } from '../../core/runtime.ts'

/**
 * What clients discover. No licence and no mode but `sse`: both would make CopilotKit's clients
 * look for their maker's platform.
 */
export function info(runtime: Runtime, version: string, single: boolean) {
  const agents: Record<string, object> = {}
  for (const { agent, aliases, description = '', suggestions } of runtime.agents()) {
    for (const name of [agent.name, ...aliases]) {
      agents[name] = {
        name,
        description,
        ...(suggestions.length > 0 && { suggestions }),
        className: 'Handrail',
        capabilities: {
          identity: { name: agent.name },
          transport: { streaming: true },
          humanInTheLoop: { supported: true, interrupts: true },
        },
      }
    }
  }
  const threadEndpoints = { list: true, inspect: true, mutations: true, realtimeMetadata: false }
  return {
    version,
    mode: 'sse',
    agents,
    audioFileTranscriptionEnabled: false,
    threadEndpoints,
    suggestions: true,
    a2uiEnabled: false,
    openGenerativeUIEnabled: false,
    telemetryDisabled: true,
    ...(single && { singleRoute: { resourceOperations: true, threadEndpoints } }),
  }
}
