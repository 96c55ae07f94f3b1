/** What the address of the page says: which server, which thread. */
const query = new URLSearchParams(window.location.search)

export const runtimeUrl = query.get('runtime') ?? '/copilotkit'
export const threadId = query.get('thread') ?? undefined
