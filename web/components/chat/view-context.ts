'use client'

import { createContext, useContext } from 'react'
import type { ThreadView } from '../../lib/use-link.ts'

/** The chat that is shown, for what CopilotKit renders inside of it. */
export const ViewContext = createContext<ThreadView | undefined>(undefined)

export const useView = () => useContext(ViewContext)
