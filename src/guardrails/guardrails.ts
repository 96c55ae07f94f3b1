import { ConfigError } from '../config.ts'
import { RuntimeError } from '../core/errors.ts'
import type { ClientRules, Denial, Guard } from '../core/guard.ts'
import { textOf } from '../core/messages.ts'
import type { Model } from '../core/model.ts'
import { globs } from '../core/policy.ts'
import { judgeRemotely, type RemoteGuard } from './remote.ts'
import {
  type GuardRule,
  judgeLength,
  judgeLongText,
  judgeText,
  readClientRules,
  readRules,
} from './rules.ts'
import { textOfInput } from './strings.ts'
import { judgeTopics } from './topics.ts'
import { watchOutput } from './watch.ts'

/** What may be said, shown and done. Each place has its own rules. */
export interface Guardrails {
  /** What users say, before anything comes of it. */
  input?: readonly GuardRule[]
  /** What models say, while they do. */
  output?: readonly GuardRule[]
  /** What tools are called with. */
  arguments?: readonly GuardRule[]
  remote?: RemoteGuard
  /** Judges topics; by default the model of the agents. */
  classifier?: Model
  /** What to do with what could not be checked. Default `deny`. */
  whenAway?: 'deny' | 'allow'
  /** Keeps out of the journal what was denied. */
  redact?: boolean
  /** Characters of output that are held back where a pattern may be in the middle of a match. Default 200. */
  lookBack?: number
}

export interface GuardSetup {
  model: Model
  log: { warn(about: object, message: string): void }
}

/** The operator's rules, ready to be asked. A client's own are heard even where there are none. */
export async function openGuard(given: Guardrails, { model, log }: GuardSetup): Promise<Guard> {
  const { remote, redact = false, whenAway = 'deny', lookBack = 200 } = given
  if (remote && !/^https?:\/\//.test(remote.url))
    throw new ConfigError('guardrails.remote.url: write an address that begins with http.')
  const input = readRules(given.input ?? [], 'input', lookBack)
  const output = readRules(given.output ?? [], 'output', lookBack)
  const forTools = readRules(given.arguments ?? [], 'arguments', lookBack)
  const longestWord = Math.max(
    0,
    ...(given.output ?? []).flatMap(({ words = [] }) => words).map((word) => word.length),
  )

  /** The rules of one request are read once, for all of its messages. */
  const clients = new WeakMap<ClientRules, ReturnType<typeof readClientRules>>()
  const judgeClient = (rules: ClientRules) => {
    const known = clients.get(rules) ?? readClientRules(rules)
    clients.set(rules, known)
    return known
  }

  /** What cannot be checked passes or not, as the operator says. */
  const checked = async (how: string, judge: () => Promise<Denial | undefined>) => {
    try {
      return await judge()
    } catch (error) {
      log.warn({ how, err: error }, 'a message could not be checked')
      if (whenAway === 'allow') return undefined
      const known = error instanceof RuntimeError && error.code === 'guardrail_away'
      throw known ? error : new RuntimeError('guardrail_away', undefined, { cause: error })
    }
  }

  return {
    redacts: redact,
    async input(message, said) {
      const text = textOf(message)
      const { client, before, imported } = said
      const local =
        judgeLength(input, text) ??
        (await judgeLongText(input, text)) ??
        (client && !remote && (await judgeClient(client)(text)))
      if (local || imported) return local || undefined
      const lists: ClientRules[] = []
      if (remote) lists.push({ allow: remote.allow ?? [], deny: remote.deny ?? [] })
      if (remote && client && client.allow.length + client.deny.length > 0) lists.push(client)
      for (const list of lists) {
        const found = await checked('remote', () => judgeRemotely(remote!, list, message, before()))
        if (found) return found
      }
      const classifier = given.classifier ?? model
      return await checked('topics', () => judgeTopics(input, message, classifier, said))
    },
    ...(output.length > 0 && {
      output: () => watchOutput(output, Math.max(lookBack, longestWord)),
    }),
    ...(forTools.length > 0 && {
      arguments: (tool: string, given: unknown) => {
        const about = forTools.filter((rule) => rule.tool === undefined || globs(rule.tool, tool))
        if (about.length === 0) return undefined
        const text = textOfInput(given)
        return judgeLength(about, text) ?? judgeText(about, text)
      },
    }),
  }
}
