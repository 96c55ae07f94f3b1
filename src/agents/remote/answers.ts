import type { Answer } from '../../core/entries.ts'

/** What a person said, as a remote hears it: undefined when nobody said anything. */
export function payloadOf(answer: Answer): unknown {
  const reason = answer.reason === undefined ? {} : { reason: answer.reason }
  switch (answer.state) {
    case 'answered':
      return answer.value ?? {}
    case 'approved':
      return { approved: true, ...reason }
    case 'rejected':
      return { approved: false, ...reason }
    case 'timeout':
    case 'cancelled':
      return undefined
  }
}
