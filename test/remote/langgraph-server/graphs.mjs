// Graphs that the tests run on a real LangGraph server. What they do to the outside is a line in a file.
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { AIMessage, ToolMessage } from '@langchain/core/messages'
import { FakeListChatModel } from '@langchain/core/utils/testing'
import {
  Annotation,
  Command,
  interrupt,
  MessagesAnnotation,
  StateGraph,
} from '@langchain/langgraph'

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  topic: Annotation(),
  notes: Annotation({ reducer: (left, right) => [...left, ...right], default: () => [] }),
})

const mark = (what) => appendFileSync(process.env.TEST_MARKS ?? '/dev/null', `${what}\n`)

const said = ({ messages }) =>
  String(messages.findLast((one) => one.getType() === 'human')?.content)

const model = (text) => new FakeListChatModel({ responses: [text] })

/** The first word of what the user says decides where it goes. */
const route = (state) => new Command({ goto: goals[said(state).split(' ')[0]] ?? 'speak' })

async function speak(state, config) {
  config.writer?.({ name: 'mood', value: 'calm' })
  const text = `You said ${state.messages.filter((one) => one.getType() === 'human').length}: ${said(state)}`
  const message = await model(text).invoke(state.messages, config)
  return { messages: [message], topic: said(state) }
}

function confirm(state) {
  const answer = interrupt({ question: `May I ${said(state)}?` })
  mark(`confirmed ${JSON.stringify(answer)}`)
  return { messages: [new AIMessage(`You answered ${JSON.stringify(answer)}.`)] }
}

const asker = (name) => () => ({
  notes: [`${name}: ${JSON.stringify(interrupt({ question: name }))}`],
})

const both = ({ notes }) => ({ messages: [new AIMessage([...notes].sort().join(' '))] })

async function slow(state) {
  mark('slow began')
  await sleep(Number(said(state).split(' ')[1]))
  mark('slow ended')
  return { messages: [new AIMessage('Slowly done.')] }
}

function use() {
  const calls = [{ id: 'call_1', name: 'peek', args: { at: 'sea' }, type: 'tool_call' }]
  const result = new ToolMessage({ tool_call_id: 'call_1', name: 'peek', content: 'waves' })
  return { messages: [new AIMessage({ content: '', tool_calls: calls }), result] }
}

/** A tool of the page: the graph ends with the call, and goes on when its result comes. */
function page({ messages }) {
  const last = messages.at(-1)
  if (last.getType() === 'tool')
    return { messages: [new AIMessage(`The page says ${last.content}.`)] }
  const calls = [{ id: 'page_1', name: 'pick_colour', args: {}, type: 'tool_call' }]
  return { messages: [new AIMessage({ content: '', tool_calls: calls })] }
}

function fail() {
  throw new Error('The graph is broken.')
}

const goals = {
  ask: 'confirm',
  two: ['first', 'second'],
  slow: 'slow',
  use: 'use',
  page: 'page',
  fail: 'fail',
}

export const clerk = new StateGraph(State)
  .addNode('route', route, {
    ends: ['speak', 'confirm', 'first', 'second', 'slow', 'use', 'page', 'fail'],
  })
  .addNode('speak', speak)
  .addNode('confirm', confirm)
  .addNode('first', asker('first'))
  .addNode('second', asker('second'))
  .addNode('both', both)
  .addNode('slow', slow)
  .addNode('use', use)
  .addNode('page', page)
  .addNode('fail', fail)
  .addEdge('__start__', 'route')
  .addEdge(['first', 'second'], 'both')
  .addEdge('use', 'speak')
  .compile()

export const hidden = clerk
