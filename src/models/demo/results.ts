import { type Message, textOf } from '../../core/messages.ts'
import { brief, type Line, say } from './line.ts'

/** How the result of a tool is put into words, when it is the only one. */
const sentences: Record<string, (text: string) => string> = {
  weather: (text) => `Here is the weather. ${text}.`,
  write_file: (text) => `Done. ${text}`,
  read_file: (text) => `This is what it says:\n\n${text}`,
  list_files: (text) => `These are the files:\n\n${text}`,
  run_code: (text) => `The code gave:\n\n${text}`,
  echo: (text) => `The echo came back: ${text}`,
}

export function answerTo(results: readonly Message[]): Line[] {
  if (results.length === 1) return results.map((result) => say(sentenceOf(result)))
  const lines = results.map((result) => `- ${nameOf(result)}: ${sentenceOf(result)}`)
  return [say(`All ${results.length} have ended:\n\n${lines.join('\n')}`)]
}

function sentenceOf(result: Message): string {
  const text = brief(textOf(result).trim(), 2_000)
  if (result.failed) {
    const reason = text || 'no reason was given'
    // A refusal and a failure look alike from here, and code may have run up to its error.
    const undone = nameOf(result) === 'run_code' ? 'not done, or not to its end' : 'not done'
    return `Understood, ${nameOf(result)} was ${undone}. The reason I was given: ${reason}`
  }
  return (sentences[nameOf(result)] ?? ((told) => `The tool said: ${told}`))(text)
}

const nameOf = (result: Message) => result.name ?? 'the tool'
