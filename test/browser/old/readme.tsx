import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Page } from './readme-page.tsx'

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Page />
  </StrictMode>,
)
