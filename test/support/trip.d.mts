import type { governed, governedTools } from '../../src/index.ts'

export declare const answerTo: (text: string) => string
export interface TripWorld {
  paid?: (payment: { n: number; effectId: string }) => void
  called?: (messages: unknown[]) => void
}
export declare function tripGraph(
  handrail: { governed: typeof governed; governedTools: typeof governedTools },
  world?: TripWorld,
): { graph: { compile: unknown }; tools: object[] }
