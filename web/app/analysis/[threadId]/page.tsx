import { Analysis } from '../../../components/analysis/analysis.tsx'

export default async function Page({ params }: { params: Promise<{ threadId: string }> }) {
  const { threadId } = await params
  return <Analysis key={threadId} threadId={decodeURIComponent(threadId)} />
}
