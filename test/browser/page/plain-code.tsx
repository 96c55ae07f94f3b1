import type { ReactNode } from 'react'

/** In place of the syntax highlighter of react-ui, which takes longer to load than all the rest. */
export function Prism({ children }: { children: ReactNode }) {
  return <pre>{children}</pre>
}

export const Light = Prism
