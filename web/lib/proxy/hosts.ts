/** The settings that say by which names the page may be called. */
export interface HostSettings {
  /** Address that the page listens on (`WEB_HOST`); without it, this machine only. */
  listensOn?: string | undefined
  /** Further names, separated by commas (`WEB_ALLOWED_HOSTS`). */
  names?: string | undefined
  /** Address of the runtime (`HANDRAIL_URL`). */
  upstream: string
}

/**
 * Returns whether a request with this `Host` header is answered. A web page can make its own name point to this machine (DNS rebinding), and a
 * runtime without keys is protected by nothing but this check. Such a runtime answers to names of this machine only, so a
 * runtime at any other address has keys, and then every name is allowed.
 */
export function hostCheck(settings: HostSettings): (host: string) => boolean {
  const { upstream, listensOn = '', names = '' } = settings
  if (URL.canParse(upstream) && !isLocal(nameIn(new URL(upstream).host))) return () => true
  const listed = new Set([listensOn, ...names.split(/[\s,]+/)].filter(Boolean).map(nameIn))
  const anyAddress = ['0.0.0.0', '[::]', '::'].includes(listensOn)
  return (host) => {
    const name = nameIn(host)
    // No name points anywhere else if there is no name: an IP address is safe.
    return isLocal(name) || listed.has(name) || (anyAddress && isAddress(name))
  }
}

/** The name in `name:port`, as it is compared. */
const nameIn = (host: string) => host.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '')

const isLocal = (name: string) =>
  /^(localhost|127(\.\d+){3}|\[::1\])$/.test(name) || name.endsWith('.localhost')

const isAddress = (name: string) => /^(\d{1,3}(\.\d{1,3}){3}|\[[\da-f:.]+\])$/.test(name)
