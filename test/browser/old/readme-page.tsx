import type { ReactNode } from 'react'

/** Stands for the block of the README, which the build puts here: see vite.config.mjs. */
export const Page = (): ReactNode => null
