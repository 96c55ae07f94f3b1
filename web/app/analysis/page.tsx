import { NewAnalysis } from '../../components/analysis/new-analysis.tsx'

export default function Page() {
  return <NewAnalysis />
}
