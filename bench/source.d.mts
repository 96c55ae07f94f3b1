export function words(
  count: number,
  burst: number,
  wait?: number,
): AsyncGenerator<{ type: 'text'; text: string }, void, undefined>
export function pause(): ReturnType<typeof words>
export function answers(asked: string): ReturnType<typeof words>[]
