/**
 * Loads a value when it is first wanted, and shares it. A load that fails is not kept: the next caller loads
 * again.
 */
export function lazily<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined
  return () => {
    if (loading) return loading
    const started = load()
    loading = started
    started.catch(() => {
      if (loading === started) loading = undefined
    })
    return started
  }
}
