import { AIMessage, AIMessageChunk, type BaseMessage } from '@langchain/core/messages'
import { FakeStreamingChatModel } from '@langchain/core/utils/testing'

/** A chat model of LangChain's that says what it is told, word by word, and remembers what it was asked. */
export function sayingModel(script: (messages: BaseMessage[], call: number) => AIMessage | string) {
  const asked: BaseMessage[][] = []
  class Saying extends FakeStreamingChatModel {
    override _llmType() {
      return 'saying'
    }

    override async *_streamResponseChunks(messages: BaseMessage[]) {
      const { ChatGenerationChunk } = await import('@langchain/core/outputs')
      const said = script(messages, asked.length)
      asked.push(messages)
      const message = typeof said === 'string' ? new AIMessage(said) : said
      for (const text of message.text.split(/(?<= )/))
        if (text !== '') yield new ChatGenerationChunk({ text, message: new AIMessageChunk(text) })
      const tool_call_chunks = (message.tool_calls ?? []).map(({ id, name, args }, index) => {
        return { id, name, args: JSON.stringify(args), index, type: 'tool_call_chunk' as const }
      })
      const usage_metadata = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
      const last = new AIMessageChunk({ content: '', tool_call_chunks, usage_metadata })
      yield new ChatGenerationChunk({ text: '', message: last })
    }

    override bindTools(tools: never[]) {
      return this.withConfig({ tools } as never) as never
    }
  }
  return Object.assign(new Saying({}), { asked })
}

export const calling = (id: string, name: string, args: Record<string, unknown>, content = '') =>
  new AIMessage({ content, tool_calls: [{ id, name, args, type: 'tool_call' }] })
