import { InboxPage } from '../../components/inbox/inbox-page.tsx'

export default function Page() {
  return <InboxPage />
}
