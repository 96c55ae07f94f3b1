import { newId } from '../../lib/ids.ts'

/** The name of a file that is not finished yet; one left behind by a crash is never listed. */
export const temporaryName = () => `.${newId('handrail')}.tmp`

export const isTemporary = (name: string) => /^\.handrail_\w+\.tmp$/.test(name)
