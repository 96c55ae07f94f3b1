import type { Frame } from './chats.ts'

/**
 * What a careful client shows after these frames: texts as they grow, replaced by the finished
 * ones; what was retracted is gone. A text that is sent twice is seen twice.
 */
export function screen(frames: Iterable<Frame>): string[] {
  const growing = new Map<string, string>()
  const lines: { about: string; text: string }[] = []
  const finish = (about: string, text: string) => {
    growing.delete(about)
    lines.push({ about, text })
  }
  for (const { event, data } of frames) {
    switch (event) {
      case 'governor':
        break // how things stand when it is told, and no part of what happened
      case 'answer_delta':
      case 'thinking_delta':
        growing.set(data.message_id, (growing.get(data.message_id) ?? '') + data.delta)
        break
      case 'tool_output':
        growing.set(data.id, (growing.get(data.id) ?? '') + data.delta)
        break
      case 'answer':
      case 'thinking':
        finish(data.message_id, `${event}: ${data.content}`)
        break
      case 'tool_result':
        finish(data.id, `tool_result: ${data.tool_output}`)
        break
      case 'retracted':
        for (const id of data.ids) growing.delete(id)
        break
      default:
        lines.push({ about: '', text: `${event}: ${JSON.stringify(data)}` })
    }
  }
  return [...lines.map(({ text }) => text), ...[...growing.values()].map((text) => `… ${text}`)]
}
