import Link from 'next/link'

export default function NotFound() {
  return (
    <div className="page-note">
      <h1>There is nothing at this address</h1>
      <p>
        <Link href="/">Start a new chat</Link>
      </p>
    </div>
  )
}
