import { getHeapStatistics } from 'node:v8'

/** Bytes of a share of the JavaScript heap that this process may have, 0 to 1. */
export const heapShare = (share: number): number =>
  Math.floor(getHeapStatistics().heap_size_limit * share)
