import { AbstractAgent, type BaseEvent, EventType, type RunAgentInput } from '@ag-ui/client'
import { Observable } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import type { Settings } from '../../src/settings.ts'
import { serve } from '../support/serve.ts'
import { find } from '../support/tools.ts'
import { ask, finished, remote, sse, started, textEvents } from './support.ts'

/** As a library of AG-UI would make one. */
class Echo extends AbstractAgent {
  static inputs: RunAgentInput[] = []
  run(input: RunAgentInput): Observable<BaseEvent> {
    Echo.inputs.push(input)
    const { threadId, runId } = input
    const said = input.messages.at(-1)?.content
    return new Observable((out) => {
      if (said === 'throw') return out.error(new Error('It broke.'))
      out.next({ type: EventType.RUN_STARTED, threadId, runId } as BaseEvent)
      const chunk = { type: EventType.TEXT_MESSAGE_CHUNK, messageId: runId, delta: `echo ${said}` }
      out.next(chunk as BaseEvent)
      out.next({ type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent)
      out.complete()
    })
  }
}

describe('settings', () => {
  test('an agent object of AG-UI is taken as it is', async () => {
    const server = await serve({ agents: [aguiAgent({ name: 'echo', agent: new Echo() })] })
    expect(find(await ask(server, 'c', 'hello'), 'answer').content).toBe('echo hello')
    expect(find(await ask(server, 'c', 'again'), 'answer').content).toBe('echo again')
    const [first, second] = Echo.inputs
    expect(second!.threadId).toBe(first!.threadId)
    expect(find(await ask(server, 'c', 'throw'), 'error').code).toBe('remote_failed')
  })

  test('agents of all kinds stand in one list, after our own', async () => {
    const far = await remote((_, response) =>
      sse(response, [started, ...textEvents('m', 'far'), finished]),
    )
    const server = await serve({
      remote: [
        { name: 'agui', url: `${far.url}/run`, description: 'Far away' },
        { deploymentUrl: far.url, agents: ['graph', { name: 'other', assistant: 'graph' }] },
      ],
    })
    const agents = server.server.runtime.agents().map(({ agent }) => agent.name)
    expect(agents[0]).toBe('assistant')
    expect(agents.slice(-3)).toEqual(['agui', 'graph', 'other'])
    const info = await (await fetch(`${server.url}/copilotkit/info`)).json()
    expect(info).toMatchObject({ agents: { agui: { description: 'Far away' }, other: {} } })
    const start = { user_message: 'go', agent: 'agui' }
    const frames = await (await server.open('POST', '/chats/c/interactions', start)).rest()
    expect(find(frames, 'answer').content).toBe('far')
  })

  test.each<[string, Settings['remote'], string]>([
    ['an address that is none', [{ name: 'a', url: 'ftp://x' }], 'remote.0.url'],
    ['no agents', [{ deploymentUrl: 'http://x.example', agents: [] }], 'remote.0.agents'],
    ['what it does not know', [{ url: 'http://x.example', colour: 1 } as never], 'remote.0'],
  ])('refuses %s before anything is opened', async (_, list, named) => {
    await expect(serve({ remote: list! })).rejects.toThrow(named)
  })

  test('what a remote says is held to the rules for what may be shown', async () => {
    const far = await remote((_, response) =>
      sse(response, [started, ...textEvents('m', 'The code is swordfish.'), finished]),
    )
    const server = await serve({
      remote: [{ name: 'far', url: `${far.url}/run` }],
      guardrails: { output: [{ decision: 'deny', words: ['swordfish'], reason: 'A secret.' }] },
    })
    const start = { user_message: 'go', agent: 'far' }
    const frames = await (await server.open('POST', '/chats/c/interactions', start)).rest()
    expect(find(frames, 'error').code).toBe('guardrail')
    expect(JSON.stringify(frames)).not.toContain('swordfish')
  })

  test('tools of ours that are named are offered, and called by the policy', async () => {
    const far = await remote(({ body }, response) => {
      const result = body.messages.find(({ role }: { role: string }) => role === 'tool')
      if (result)
        return sse(response, [started, ...textEvents('m2', `Heard: ${result.content}`), finished])
      const call = { toolCallId: 'far-1' }
      sse(response, [
        started,
        { type: 'TOOL_CALL_START', ...call, toolCallName: 'list_files' },
        { type: 'TOOL_CALL_ARGS', ...call, delta: '{}' },
        { type: 'TOOL_CALL_END', ...call },
        finished,
      ])
    })
    const server = await serve({
      remote: [{ name: 'far', url: `${far.url}/run`, tools: ['list_files'] }],
    })
    const start = { user_message: 'go', agent: 'far' }
    const frames = await (await server.open('POST', '/chats/c/interactions', start)).rest()
    expect(far.asked[0]!.body.tools.map(({ name }: { name: string }) => name)).toEqual([
      'list_files',
    ])
    expect(find(frames, 'answer').content).toMatch(/^Heard: /)
    const kinds = (await server.journal('c')).filter(({ kind }) => kind === 'effect.intended')
    expect(kinds.map(({ body }) => (body as { effect: string }).effect)).toEqual([
      'remote',
      'tool',
      'remote',
    ])
  })
})
