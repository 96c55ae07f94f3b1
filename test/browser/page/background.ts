/** What the agent may do to this page; the count shows whether it was done once. */
export function changeBackground(color: string): string {
  document.body.style.background = color
  const { dataset } = document.body
  dataset.painted = String(Number(dataset.painted ?? 0) + 1)
  return `the background is ${color}`
}
