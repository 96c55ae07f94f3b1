import { derive, mac } from '../lib/mac.ts'
import type { AuditKeys } from './audit.ts'

/** A link that is kept elsewhere: up to there nobody can take anything away unnoticed. */
export interface Head {
  v: 1
  ref: string
  seq: number
  link: string
  at: number
  keyId: string
  mac: string
}

export function headOf(
  keys: AuditKeys,
  { ref, seq, link }: Pick<Head, 'ref' | 'seq' | 'link'>,
  at: number,
): Head {
  const { keyId, secret } = keys[0]
  return { v: 1, ref, seq, link, at, keyId, mac: macOf(secret, { ref, seq, link, at }) }
}

const macOf = (secret: string, { ref, seq, link, at }: Pick<Head, 'ref' | 'seq' | 'link' | 'at'>) =>
  mac(derive(secret, 'heads'), JSON.stringify([ref, seq, link, at]))

/** A line of a file of heads, if it is one of ours. */
export function readHead(keys: AuditKeys, line: string): Head | undefined {
  try {
    const head = JSON.parse(line) as Head
    const secret = keys.find(({ keyId }) => keyId === head.keyId)?.secret
    return secret !== undefined && macOf(secret, head) === head.mac ? head : undefined
  } catch {
    return undefined
  }
}

/** Heads by thread and seq. A head that was found is taken out; what stays is missing. */
export class HeadList {
  readonly #heads = new Map<string, Map<number, Set<string>>>()

  add({ ref, seq, link }: Pick<Head, 'ref' | 'seq' | 'link'>): void {
    const seqs = this.#heads.get(ref) ?? new Map<number, Set<string>>()
    this.#heads.set(ref, seqs)
    seqs.set(seq, (seqs.get(seq) ?? new Set()).add(link))
  }

  of(ref: string): Map<number, Set<string>> {
    return this.#heads.get(ref) ?? new Map()
  }

  /** An erased life of the thread had these; a later one does not. */
  found(ref: string, links: ReadonlyMap<number, string>): void {
    const seqs = this.of(ref)
    for (const [seq, heads] of [...seqs]) {
      heads.delete(links.get(seq) ?? '')
      if (heads.size === 0) seqs.delete(seq)
    }
    if (seqs.size === 0) this.#heads.delete(ref)
  }

  drop(ref: string): void {
    this.#heads.delete(ref)
  }

  *rest(): Generator<{ ref: string; seq: number }> {
    for (const [ref, seqs] of this.#heads) yield { ref, seq: Math.max(...seqs.keys()) }
  }
}
