import type { ServiceAdapter } from '../../../src/models/copilotkit-adapter.ts'
import type { Json } from './wires.ts'

/** A CopilotKit service adapter as people write them: one request, written on as it streams. */
export function fetchAdapter(baseUrl: string): ServiceAdapter {
  return {
    async process({ eventSource, messages, actions }) {
      const response = await fetch(`${baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'm',
          stream: true,
          messages: bodyOf(messages),
          ...toolsOf(actions),
        }),
      })
      if (!response.ok) {
        const { status, headers } = response
        throw Object.assign(new Error(await response.text()), { status, headers })
      }
      await eventSource.stream(async (events) => {
        let text = ''
        let open: string | undefined
        let ended = false
        const decoder = new TextDecoder()
        for await (const bytes of response.body!) {
          text += decoder.decode(bytes, { stream: true })
          const blocks = text.split('\n\n')
          text = blocks.pop()!
          for (const block of blocks) {
            const line = block.replace(/^data: /, '')
            if (line === '[DONE]') continue
            const [choice] = JSON.parse(line).choices ?? []
            if (choice?.delta?.content)
              events.sendTextMessageContent({ messageId: 'm', content: choice.delta.content })
            for (const call of choice?.delta?.tool_calls ?? []) {
              if (call.id) {
                if (open !== undefined) events.sendActionExecutionEnd({ actionExecutionId: open })
                open = call.id
                events.sendActionExecutionStart({
                  actionExecutionId: open,
                  actionName: call.function.name,
                })
              }
              const { arguments: args } = call.function
              if (args) events.sendActionExecutionArgs({ actionExecutionId: open, args })
            }
            ended ||= Boolean(choice?.finish_reason)
          }
        }
        if (!ended && open !== undefined) throw new Error('terminated')
        if (open !== undefined) events.sendActionExecutionEnd({ actionExecutionId: open })
        events.complete()
      })
      return { threadId: 'remote', extensions: { openaiAssistantAPI: { threadId: 'remote' } } }
    },
  }
}

/** Calls of one answer belong into one message there. */
function bodyOf(messages: readonly Json[]): Json[] {
  const out: Json[] = []
  for (const one of messages) {
    const last = out.at(-1)
    if (one.isTextMessage()) {
      if (last?.role === one.role) last.content += `\n${one.content}`
      else out.push({ role: one.role, content: one.content })
    } else if (one.isActionExecutionMessage()) {
      const called = { name: one.name, arguments: JSON.stringify(one.arguments) }
      const call = { id: one.id, type: 'function', function: called }
      if (last?.role === 'assistant') last.tool_calls = [...(last.tool_calls ?? []), call]
      else out.push({ role: 'assistant', content: null, tool_calls: [call] })
    } else if (one.isResultMessage())
      out.push({ role: 'tool', tool_call_id: one.actionExecutionId, content: one.result })
  }
  return out
}

const toolsOf = (actions: readonly Json[]) =>
  actions.length === 0
    ? {}
    : {
        tools: actions.map(({ name, description, jsonSchema }) => ({
          type: 'function',
          function: { name, description, parameters: JSON.parse(jsonSchema) },
        })),
      }
