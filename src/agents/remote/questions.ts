import type { Interrupt } from './remote-agent.ts'

/** Where people who write agents put the words of a question. */
const places = ['question', 'message', 'title', 'description', 'text']

/** A question of any shape: LangGraph's `interrupt()` takes whatever it is given. */
export function questionIn(id: string, given: unknown): Interrupt {
  const value = typeof given === 'string' ? parsed(given) : given
  const said = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  const words = [...places.map((place) => said[place]), value].find(isText)
  return { id, kind: 'input', title: words ?? 'The remote agent asks for an answer', input: value }
}

const isText = (one: unknown): one is string => typeof one === 'string' && one !== ''

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
