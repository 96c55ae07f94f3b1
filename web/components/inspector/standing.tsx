'use client'

import type { Moment } from './moment.ts'

/** Where the run stood at the chosen point. */
export function Standing({ moment }: { moment: Moment }) {
  const { status, legs, messages, calls, inputTokens, outputTokens, cost } = moment
  const tokens = `${inputTokens.toLocaleString()} in, ${outputTokens.toLocaleString()} out`
  return (
    <section aria-label="State at this point">
      <dl className="facts standing">
        <Line name="Status" value={status} />
        <Line name="Legs" value={String(legs)} />
        <Line name="Messages" value={String(messages)} />
        <Line name="Calls" value={`${calls.model} of models, ${calls.tool} of tools`} />
        <Line name="Tokens" value={tokens} />
        {cost > 0 && (
          <Line name="Cost" value={cost.toLocaleString([], { maximumFractionDigits: 6 })} />
        )}
        {moment.running.length > 0 && <Line name="Under way" value={moment.running.join(', ')} />}
        {moment.open.length > 0 && <Line name="Asked" value={moment.open.join('; ')} />}
        {moment.budget !== undefined && <Line name="Budget set" value={moment.budget} />}
      </dl>
    </section>
  )
}

const Line = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)
