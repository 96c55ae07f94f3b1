'use client'

/** Something in the page itself broke. What was said is on the server. */
export default function Broken({ reset }: { reset: () => void }) {
  return (
    <div className="page-note">
      <h1>This page broke</h1>
      <p>Nothing is lost: the chat is on the server, and goes on there.</p>
      <p>
        <button type="button" className="button" onClick={reset}>
          Show it again
        </button>
      </p>
    </div>
  )
}
