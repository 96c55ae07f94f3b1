import type { Decision, Named } from './asks.ts'
import type { Ask } from './entries.ts'
import { RuntimeError } from './errors.ts'

/**
 * What does not go together, or not with this question, is refused: nobody is to guess what a person meant, and
 * a yes must not be recorded beside a no.
 */
export function refuseOdd({ kind }: Ask, said: Decision, { value, all = value }: Named): void {
  const refuse = (name: string, problem: string): never => {
    const field = `${all}.${name}`
    throw new RuntimeError('invalid_request', `${field}: ${problem}`, { field })
  }
  const { approved, stop, outcome, value: answer } = said
  if (kind !== 'in_doubt' && outcome !== undefined) refuse('outcome', 'is for effects in doubt.')
  if (kind === 'approval' && answer !== undefined && approved !== undefined)
    refuse('approved', 'leave it out beside an answer, which stands in place of the call.')
  if (kind === 'in_doubt') {
    if (said.input !== undefined)
      refuse('edited_input', 'it is run as it was begun, or not at all.')
    if (said.remember !== undefined) refuse('remember', 'is for calls that are still to be made.')
    if (outcome !== undefined && approved !== undefined)
      refuse('approved', 'leave it out beside an outcome.')
    if (outcome === undefined && approved === undefined && !stop)
      refuse('outcome', 'is missing. Send happened, did_not or skip.')
    // Whether it happened and whether it may happen are not the same yes.
    if (outcome === undefined && approved === true)
      refuse('outcome', 'it may have happened already. Send happened, did_not (it is run) or skip.')
    if (answer !== undefined && outcome !== 'happened')
      refuse('result', 'goes with the outcome "happened".')
  }
  if (kind === 'budget') refuseOddBudget(said, refuse)
}

function refuseOddBudget(said: Decision, refuse: (name: string, problem: string) => never): void {
  const { approved, stop, option, newStatus } = said
  const limits = ['newLimit', 'newTokenLimit', 'newMoneyLimit'] as const
  const limit = limits.find((name) => said[name] !== undefined)
  if (said.input !== undefined) refuse('edited_input', 'a budget is set by newLimit and the like.')
  const ends = stop === true || option === 'stop' || approved === false
  if (ends && limit !== undefined) refuse(limit, 'leave it out: the run is to end.')
  if (ends && option !== undefined && option !== 'stop')
    refuse('option', 'leave it out: the run is to end.')
  if (ends && approved === true) refuse('approved', 'leave it out: the run is to end.')
  if (newStatus === undefined || option === undefined || option === 'stop') return
  if (newStatus !== (option !== 'unlimited'))
    refuse('newStatus', `says the opposite of the option ${option}.`)
}
