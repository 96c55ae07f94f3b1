import type { JournalEntry } from '../../lib/shapes.ts'

/** Where a run stood after some of its entries. */
export interface Moment {
  status: string
  legs: number
  messages: number
  /** Titles of what was asked and not answered. */
  open: string[]
  /** Names of effects that had begun and not ended. */
  running: string[]
  calls: { model: number; tool: number; remote: number }
  inputTokens: number
  outputTokens: number
  cost: number
  budget: string | undefined
}

interface Body {
  message?: { role?: string }
  ids?: string[]
  ask?: { askId: string; title: string }
  askId?: string
  effectId?: string
  effect?: 'model' | 'tool' | 'remote'
  name?: string
  usage?: { inputTokens?: number; outputTokens?: number; cost?: number }
  actionLimit?: number
  isHitlEnabled?: boolean
}

/** A fold over what the journal says, as the server makes it, but for people. */
export function momentAt(entries: readonly JournalEntry[]): Moment {
  const open = new Map<string, string>()
  const running = new Map<string, string>()
  const now: Moment = {
    ...{ status: 'new', legs: 0, messages: 0, open: [], running: [], budget: undefined },
    ...{ calls: { model: 0, tool: 0, remote: 0 }, inputTokens: 0, outputTokens: 0, cost: 0 },
  }
  for (const { kind, body } of entries) {
    const said = (body ?? {}) as Body
    if (kind.startsWith('run.')) now.status = kind.slice('run.'.length)
    if (kind === 'run.started') {
      now.status = 'running'
      now.legs++
    }
    if (kind === 'message.added') now.messages++
    if (kind === 'message.retracted') now.messages -= said.ids?.length ?? 0
    if (kind === 'ask.raised' && said.ask) open.set(said.ask.askId, said.ask.title)
    if (kind === 'ask.answered') open.delete(said.askId ?? '')
    if (kind === 'effect.intended') {
      running.set(said.effectId ?? '', said.name ?? '')
      if (said.effect) now.calls[said.effect]++
    } else if (kind.startsWith('effect.')) running.delete(said.effectId ?? '')
    now.inputTokens += said.usage?.inputTokens ?? 0
    now.outputTokens += said.usage?.outputTokens ?? 0
    now.cost += said.usage?.cost ?? 0
    if (kind === 'governor.set' && said.actionLimit !== undefined)
      now.budget = `${said.actionLimit} calls`
  }
  return { ...now, open: [...open.values()], running: [...running.values()] }
}

/** How long each effect took, by the seq of the entry that ended it. */
export function durationsOf(entries: readonly JournalEntry[]): ReadonlyMap<number, number> {
  const begun = new Map<string, number>()
  const took = new Map<number, number>()
  for (const { kind, body, at, seq } of entries) {
    const { effectId = '' } = (body ?? {}) as Body
    if (kind === 'effect.intended') begun.set(effectId, Date.parse(at))
    else if (kind.startsWith('effect.') && begun.has(effectId))
      took.set(seq, Date.parse(at) - begun.get(effectId)!)
  }
  return took
}

/** One line of what an entry says. */
export function wordsOf({ kind, body }: JournalEntry): string {
  const said = (body ?? {}) as Body & {
    state?: string
    reason?: string
    error?: { message: string }
    why?: string
    leg?: number
    message?: { role?: string; parts?: { text?: string; name?: string }[] }
  }
  if (body === null) return 'Too large to be listed'
  if (said.ask) return said.ask.title
  if (said.message) {
    const text = said.message.parts?.map((part) => part.text ?? part.name ?? '').join(' ') ?? ''
    return `${said.message.role}: ${text}`
  }
  if (kind.startsWith('effect.')) {
    const tokens =
      said.usage && `${said.usage.inputTokens ?? 0} in, ${said.usage.outputTokens ?? 0} out`
    return [said.name, tokens, said.error?.message].filter(Boolean).join(' · ')
  }
  if (said.leg !== undefined) return `leg ${said.leg}`
  return [said.name, said.state, said.why, said.reason, said.error?.message]
    .filter(Boolean)
    .join(' · ')
}
