/** A question of the agent that only the person at this page can answer. */
export function SeatCard({
  row,
  chosen,
  choose,
}: {
  row: number | undefined
  chosen: string | undefined
  choose: ((seat: string) => void) | undefined
}) {
  return (
    <section className="card" aria-label="Choose a seat">
      <h2>Choose a seat in row {row}</h2>
      {chosen && <p role="status">Chosen: {chosen}</p>}
      {choose && (
        <p className="answers">
          {['A', 'B'].map((letter) => (
            <button key={letter} type="button" onClick={() => choose(`${row}${letter}`)}>
              Seat {row}
              {letter}
            </button>
          ))}
        </p>
      )}
    </section>
  )
}
