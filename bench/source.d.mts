export function words(
  count: number,
  burst: number,
): AsyncGenerator<{ type: 'text'; text: string }, void, undefined>
export function pause(): ReturnType<typeof words>
