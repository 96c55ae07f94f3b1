import type { Metadata, Viewport } from 'next'
import type { ReactNode } from 'react'
import '../styles/tokens.css'
import '../styles/base.css'
import '../styles/shell.css'
import '../styles/threads.css'
import '../styles/chat.css'
import '../styles/messages.css'
import '../styles/composer.css'
import '../styles/asks.css'
import '../styles/governor.css'
import '../styles/inbox.css'
import '../styles/inspector.css'
import '../styles/analysis.css'
import '../styles/motion.css'
import { App } from '../components/shell/app.tsx'

export const metadata: Metadata = {
  title: 'Handrail',
  description: 'Agents with a human hand on the rail',
  icons: { icon: '/icon.svg' },
}

export const viewport: Viewport = {
  width: 'device-width',
  initialScale: 1,
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#faf9f6' },
    { media: '(prefers-color-scheme: dark)', color: '#16181a' },
  ],
}

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>
        <App>{children}</App>
      </body>
    </html>
  )
}
