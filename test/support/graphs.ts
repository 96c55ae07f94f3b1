import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager'
import { AIMessage, AIMessageChunk, type BaseMessage } from '@langchain/core/messages'
import { FakeStreamingChatModel } from '@langchain/core/utils/testing'
import type { Frame } from './chats.ts'
import type { Served } from './serve.ts'

/** A chat model of LangChain's that says what it is told, word by word, and remembers what it was asked. */
export function sayingModel(
  script: (messages: BaseMessage[], call: number) => AIMessage | string,
  delay = 0,
) {
  const asked: BaseMessage[][] = []
  class Saying extends FakeStreamingChatModel {
    override _llmType() {
      return 'saying'
    }

    override async *_streamResponseChunks(
      messages: BaseMessage[],
      _options: object,
      manager?: CallbackManagerForLLMRun,
    ) {
      const { ChatGenerationChunk } = await import('@langchain/core/outputs')
      const said = script(messages, asked.length)
      asked.push(messages)
      const message = typeof said === 'string' ? new AIMessage(said) : said
      const pause = () => new Promise((resolve) => setTimeout(resolve, delay))
      for (const text of message.text.split(/(?<= )/)) {
        if (delay > 0) await pause()
        const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk(text) })
        if (text !== '') yield chunk
        const none = undefined
        await manager?.handleLLMNewToken(text, none, none, none, none, { chunk })
      }
      if (delay > 0) await pause()
      const tool_call_chunks = (message.tool_calls ?? []).map(({ id, name, args }, index) => {
        return { id, name, args: JSON.stringify(args), index, type: 'tool_call_chunk' as const }
      })
      const usage_metadata = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
      const last = new AIMessageChunk({ content: '', tool_call_chunks, usage_metadata })
      yield new ChatGenerationChunk({ text: '', message: last })
    }

    override bindTools(tools: object[]) {
      return this.withConfig({ tools } as object)
    }
  }
  return Object.assign(new Saying({}), { asked })
}

export const calling = (id: string, name: string, args: Record<string, unknown>, content = '') =>
  new AIMessage({ content, tool_calls: [{ id, name, args, type: 'tool_call' }] })

type Server = Pick<Served, 'start' | 'approve'>

/** Starts an interaction and gives it an answer for each thing it asks, together, until it ends. */
export async function converse(
  server: Server,
  chat: string,
  text: string,
  answer: (asked: Asked) => object | undefined,
) {
  const stream = await server.start(chat, text)
  const id = stream.response.headers.get('x-interaction-id')!
  const asked: Asked[] = []
  const frames: Frame[] = []
  for await (const frame of stream.frames) {
    frames.push(frame)
    if (frame.event !== 'approval_required') continue
    asked.push(frame.data)
    const said = answer(frame.data)
    if (!said) continue
    const body = { approval_id: frame.data.approval_id, ...said }
    const response = await server.approve(chat, id, body)
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  }
  return { id, frames, asked, status: frames.at(-1)!.data.status as string }
}

export interface Asked {
  approval_id: string
  kind: string
  tool_name: string | null
  tool_input: string | null
  card: { title: string }
}

/** The last state that the agent has shown. */
export async function stateOf(server: Pick<Served, 'journal'>, chat: string): Promise<unknown> {
  const journal = await server.journal(chat)
  return journal.findLast((entry) => entry.kind === 'state.patched')?.body.value
}
