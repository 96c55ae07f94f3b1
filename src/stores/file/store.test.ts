import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findContract } from '../../../test/contracts/find.contract.ts'
import { storeContract } from '../../../test/contracts/store.contract.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { fileStore } from './store.ts'

const open = async (clock: Clock = systemClock) => {
  const directory = await mkdtemp(join(tmpdir(), 'handrail-'))
  let store = await fileStore({ directory, clock, syncEvery: 2, segmentBytes: 4096 })
  return {
    store,
    async reopen() {
      await store.close()
      store = await fileStore({ directory, clock })
      return store
    },
    async dispose() {
      await store.close()
      await rm(directory, { recursive: true })
    },
  }
}

storeContract('file', open)
findContract('file', open)
