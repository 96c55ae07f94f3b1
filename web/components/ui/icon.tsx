const paths = {
  plus: 'M12 5v14M5 12h14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6L6 18',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  image: 'M4 5h16v14H4zM4 16l4.500-4.500 4 4 2.500-2.500 5 5M15.500 9.500h.01',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  check: 'M5 12.500l4.500 4.500L19 7.500',
  edit: 'M5 19h3.500L18.500 9l-3.500-3.500L5 15.500zM13 7.500L16.500 11',
  again: 'M19 12a7 7 0 1 1-2.100-5M19 4v4h-4',
  left: 'M14.500 6l-6 6 6 6',
  right: 'M9.500 6l6 6-6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  chevron: 'M6.500 9.500L12 15l5.500-5.500',
  more: 'M6 12h.01M12 12h.01M18 12h.01',
  inbox: 'M4 13l3-8h10l3 8v6H4zM4 13h5l1 2.500h4l1-2.500h5',
  archive: 'M4 6h16v4H4zM6 10v9h12v-9M10 14h4',
  trash: 'M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12',
  search: 'M10.500 17a6.500 6.500 0 1 1 0-13 6.500 6.500 0 0 1 0 13zM15.500 15.500L20 20',
  alert: 'M12 4l9 16H3zM12 10v4.500M12 17.500h.01',
  clock: 'M12 20a8 8 0 1 1 0-16 8 8 0 0 1 0 16zM12 8v4.500l3 1.500',
  steps: 'M6 5.500h.01M6 12h.01M6 18.500h.01M10 5.500h9M10 12h9M10 18.500h9',
  thought: 'M9 18h6M10 21h4M8 15a6 6 0 1 1 8 0c-.6.6-1 1.200-1 2H9c0-.8-.4-1.400-1-2z',
} as const

export type IconName = keyof typeof paths

/** A line drawing beside words or in a button that has a name of its own. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}

export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M6 12c6 0 8-4 14-4h6M10 12v12M17 9.500v14.500M24 8v16" />
    </svg>
  )
}

export const Spinner = () => <span className="spinner" aria-hidden="true" />
