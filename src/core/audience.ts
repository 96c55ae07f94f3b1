import type { Ask } from './entries.ts'
import type { AskQuery, AskRow } from './store.ts'

/** Whoever wants to decide, as the server knows them. */
export interface Person {
  user: string
  roles: readonly string[]
}

/** The word of an audience that means whose thread it is; no role can be called so. */
export const ownerWord = 'owner'
export const approverRole = 'approver'

/** Longer names of roles are nobody's: they would not fit an index. */
const longestRole = 100

/** All who may settle an ask: `owner`, and names of roles. A client's own call is its owner's alone. */
export function audienceOf({ kind, audience }: Pick<Ask, 'kind' | 'audience'>): readonly string[] {
  if (kind === 'client_tool') return [ownerWord]
  return audience?.length ? audience : [ownerWord, approverRole]
}

/** Whether this person may settle the ask, on a thread of the same tenant. */
export const mayDecide = (
  ask: Pick<Ask, 'kind' | 'audience'>,
  owner: string,
  { user, roles }: Person,
): boolean =>
  audienceOf(ask).some((one) => (one === ownerWord ? user === owner : rolesOf(roles).includes(one)))

/**
 * The trays that an ask lies in, and those that a person looks into: they are the same where the person
 * may decide it, or has. A client's own calls lie in none.
 */
export function traysOf({
  kind,
  audience,
  owner,
  decidedBy,
}: Pick<AskRow, 'kind' | 'audience' | 'owner' | 'decidedBy'>): Set<string> {
  const trays = new Set<string>()
  if (kind === 'client_tool') return trays
  for (const one of audienceOf({ kind, audience }))
    if (one === ownerWord) trays.add(`owner:${owner}`)
    else if (one.length <= longestRole) trays.add(`role:${one}`)
  if (decidedBy !== null) trays.add(`by:${decidedBy}`)
  return trays
}

export const traysFor = ({ user, roles }: Person): string[] => [
  `owner:${user}`,
  ...rolesOf(roles).map((role) => `role:${role}`),
  `by:${user}`,
]

export const rolesOf = (roles: readonly string[]): string[] => [
  ...new Set(roles.filter((role) => role !== ownerWord && role.length <= longestRole)),
]

export const liesIn = (ask: AskRow, trays: readonly string[]): boolean => {
  const own = traysOf(ask)
  return trays.some((tray) => own.has(tray))
}

/** Whether a row is one that is looked for; its tenant and its trays are the store's business. */
export const isWanted = (ask: AskRow, query: Omit<AskQuery, 'limit'>): boolean =>
  (query.state === undefined ||
    (query.state === 'settled' ? ask.state !== 'pending' : ask.state === query.state)) &&
  exact.every((column) => query[column] === undefined || ask[column] === query[column])

const exact = ['owner', 'kind', 'tool', 'agent', 'clientId', 'askId'] as const
