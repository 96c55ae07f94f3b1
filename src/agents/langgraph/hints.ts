/** What LangChain tells of a call besides its messages. */
export interface Told {
  tags?: readonly string[]
  metadata?: Record<string, unknown>
}

/** Calls whose words are not for readers, as LangGraph and CopilotKit mark them. */
export function isHidden({ tags = [], metadata = {} }: Told = {}): boolean {
  if (tags.includes('nostream') || tags.includes('langsmith:nostream')) return true
  return (metadata['copilotkit:emit-messages'] ?? metadata['emit-messages']) === false
}

/** State that a client may foresee from the arguments of calls while they are being written. */
export function foreseen({ metadata = {} }: Told): unknown[] | undefined {
  const given = metadata['copilotkit:emit-intermediate-state'] ?? metadata.predict_state
  return Array.isArray(given) && given.length > 0 ? given : undefined
}
