'use client'

import { actionWords, type Recommendation } from '../../lib/analysis.ts'

/** What is recommended, the most important first. */
export function Recommendations({ list }: { list: readonly Recommendation[] }) {
  return (
    <ol className="recommendations" aria-label="Recommendations">
      {list.map((one) => (
        <li key={one.recommendation_id ?? one.action_type}>
          <RecommendationView recommendation={one} />
        </li>
      ))}
    </ol>
  )
}

export function RecommendationView({ recommendation }: { recommendation: Recommendation }) {
  const { action_type, priority, reasoning, expected_impact } = recommendation
  return (
    <div className="recommendation">
      <h3>
        {actionWords(action_type)}{' '}
        <span className="badge" data-priority={priority}>
          {priority} priority
        </span>
      </h3>
      <dl className="facts">
        <div>
          <dt>Why</dt>
          <dd>{reasoning}</dd>
        </div>
        <div>
          <dt>Impact</dt>
          <dd>{expected_impact}</dd>
        </div>
      </dl>
    </div>
  )
}
