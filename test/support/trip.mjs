// A graph that uses most of what there is: model calls, questions in parallel branches, an effect outside.
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessageChunk } from '@langchain/core/messages'
import { ChatGenerationChunk } from '@langchain/core/outputs'
import { tool } from '@langchain/core/tools'
import { Annotation, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { z } from 'zod'

const list = () => Annotation({ reducer: (a, b) => [...a, ...b], default: () => [] })

/** Answers what it is asked for by name, in words long enough to be cut in. */
class TripModel extends BaseChatModel {
  constructor(called) {
    super({})
    this.called = called
  }

  _llmType() {
    return 'trip'
  }

  async *_streamResponseChunks(messages) {
    this.called(messages)
    const text = messages.at(-1).text
    for (const word of `So: ${text}${' and so on'.repeat(12)}.`.split(/(?<= )/))
      yield new ChatGenerationChunk({ text: word, message: new AIMessageChunk(word) })
  }
}

/** What the model answers to these words. */
export const answerTo = (text) => `So: ${text}${' and so on'.repeat(12)}.`

export const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  chosen: list(),
  paid: Annotation(),
})

/**
 * Plans, asks two things at once while a third branch pays, and tells of it. `handrail` is the library, from its
 * sources or as it is built.
 */
export function tripGraph(
  { governed, governedTools },
  { paid = () => {}, called = () => {} } = {},
) {
  const model = governed(new TripModel(called), { name: 'trip' })
  const pay = tool(
    async ({ n }, config) => {
      paid({ n, effectId: config.configurable.effectId })
      return `paid ${n}`
    },
    { name: 'pay', description: 'Pays', schema: z.object({ n: z.number() }) },
  )
  const [governedPay] = governedTools([pay], { access: 'write', timeout: 300 })
  const numberIn = ({ messages }) =>
    Number(/#(\d+)/.exec(messages.findLast((one) => one.type === 'human').text)?.[1] ?? 0)
  const graph = new StateGraph(State)
    .addNode('plan', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode('colour', () => ({ chosen: [interrupt({ question: 'Which colour?' })] }))
    .addNode('size', () => ({ chosen: [interrupt({ question: 'Which size?' })] }))
    .addNode('pay', async (state) => ({ paid: await governedPay.invoke({ n: numberIn(state) }) }))
    .addNode('tell', async ({ messages, chosen, paid }) => {
      const told = [...chosen].slice(-2).sort().join(' and ')
      const last = { role: 'user', content: `${told}, ${paid}` }
      return { messages: [await model.invoke([...messages, last])] }
    })
    .addEdge(START, 'plan')
    .addEdge('plan', 'colour')
    .addEdge('plan', 'size')
    .addEdge('plan', 'pay')
    .addEdge(['colour', 'size', 'pay'], 'tell')
  return { graph, tools: [governedPay] }
}
