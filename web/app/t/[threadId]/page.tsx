import { Chat } from '../../../components/chat/chat.tsx'

export default async function Page({ params }: { params: Promise<{ threadId: string }> }) {
  const { threadId } = await params
  return <Chat key={threadId} threadId={decodeURIComponent(threadId)} />
}
