import { z } from 'zod'
import { canonical } from '../lib/canonical.ts'
import { type Actor, type Answer, type Ask, type Draft, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { callDigest, schemaDigest, type Verdict } from './policy.ts'
import type { Grant, ThreadState } from './state.ts'
import { decide, type Thread } from './thread.ts'
import type { Tool } from './tool.ts'

/** How long a decision holds for further calls: for the chat (`true`), for some minutes, or not at all. */
export const rememberSchema = z.union(
  [
    z.boolean(),
    z.enum(['once', 'chat']),
    z.strictObject({ minutes: z.number().int().min(1).max(43_200) }),
  ],
  'must be true, false, "once", "chat" or {"minutes": a whole number from 1 to 43200}',
)
export type Remember = z.infer<typeof rememberSchema>

/** As an answer keeps it; nothing for this once. */
export function scopeOf(remember: Remember | undefined): Answer['remember'] {
  if (remember === undefined || remember === false || remember === 'once') return undefined
  return remember === 'chat' ? true : remember
}

/**
 * What an approval that is to be remembered grants: calls of this tool by this agent that the same rule asks about.
 * Nothing when the tool is not the one that was shown any more.
 */
export function grantDrafts(
  ask: Ask,
  { remember }: Answer,
  { tool, agent }: { tool: Tool | undefined; agent: string },
  { now, grantId }: { now: number; grantId: string },
): Draft[] {
  const { askId, rule, ruleDigest, audience } = ask
  if (!remember || !tool || ruleDigest === undefined) return []
  if (callDigest(tool, ask.input, ask) !== ask.digest) return []
  const given = draft('grant.given', {
    grantId,
    tool: tool.name,
    schema: schemaDigest(tool),
    ...(tool.server !== undefined && { server: tool.server }),
    ...(tool.origin !== undefined && { origin: tool.origin }),
    agent,
    rule,
    ruleDigest,
    ...(audience && { audience }),
    ...(remember !== true && { until: now + remember.minutes * 60_000 }),
    askId,
  })
  return [given]
}

/**
 * The grant that lets a call go on which would be asked about. It must be of this very tool and agent, and of a
 * rule that still asks, and asks the same people: where the policy has become stricter, a grant is void.
 */
export function grantFor(
  { grants }: ThreadState,
  { tool, agent, verdict }: { tool: Tool; agent: string; verdict: Verdict },
  now: number,
): Grant | undefined {
  if (verdict.decision !== 'ask') return undefined
  for (const grant of grants.values()) {
    if (!isOpen(grant, now) || grant.agent !== agent) continue
    if (isOf(grant, tool) && isBy(grant, verdict)) return grant
  }
  return undefined
}

export const isOpen = ({ until }: Grant, now: number): boolean => until === undefined || now < until

/** Whether it is this tool, from the same place, with the same schema. */
export const isOf = ({ tool: name, origin, server, schema }: Grant, tool: Tool): boolean =>
  name === tool.name &&
  server === tool.server &&
  origin === tool.origin &&
  schema === schemaDigest(tool)

/** Whether it is this rule, and asks the same people. */
export const isBy = (
  { ruleDigest, audience }: Grant,
  by: Pick<Verdict, 'ruleDigest' | 'audience'>,
): boolean => ruleDigest === by.ruleDigest && samePeople(audience, by.audience)

type Audience = readonly string[] | undefined

export const samePeople = (one: Audience, other: Audience): boolean => people(one) === people(other)

const people = (audience: Audience = []) => canonical([...new Set(audience)].sort())

/** Takes a grant back. When it resolves, nothing begins by it any more, on any server. */
export async function revoke(thread: Thread, grantId: string, actor: Actor): Promise<void> {
  await decide(thread, () => {
    if (!thread.state.grants.has(grantId)) throw new RuntimeError('grant_not_found')
    const guard = { expect: [{ fact: `grant:${grantId}`, is: 'given' }] }
    const drafts = [draft('grant.revoked', { grantId })]
    return { drafts, writing: { guard, actor }, result: undefined }
  })
}
