/**
 * Makes `instanceof` true also for instances that another copy of this package made. The loader of TypeScript gives a
 * `handrail.config.ts` a copy of its own, and errors that the configuration throws must be recognised. `name` must be
 * unique. Subclasses are compared as usual.
 */
export function shareClass(shared: { prototype: object }, name: string): void {
  const mark = Symbol.for(`handrail.${name}`)
  Object.defineProperty(shared.prototype, mark, { value: true })
  Object.defineProperty(shared, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== shared) return Function.prototype[Symbol.hasInstance].call(this, value)
      return typeof value === 'object' && value !== null && mark in value
    },
  })
}
