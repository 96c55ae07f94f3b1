import { NewChat } from '../components/chat/new-chat.tsx'

export default function Page() {
  return <NewChat />
}
