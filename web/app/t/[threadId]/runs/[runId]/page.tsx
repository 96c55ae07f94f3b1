import { Inspector } from '../../../../../components/inspector/inspector.tsx'

type Params = Promise<{ threadId: string; runId: string }>

export default async function Page({ params }: { params: Params }) {
  const { threadId, runId } = await params
  const [thread, run] = [decodeURIComponent(threadId), decodeURIComponent(runId)]
  return <Inspector key={run} threadId={thread} runId={run} />
}
