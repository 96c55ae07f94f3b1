/**
 * Runs inside QuickJS before the code: gives it `console` and `print`, and the worker a function
 * that puts a value into words. The code may spoil what this uses; it then spoils its own output
 * and nothing else, for the worker takes only short text from here.
 */
export const prelude = String.raw`
(function (write) {
  'use strict'
  const cut = Function.prototype.call.bind(String.prototype.slice)
  const { isArray } = Array
  const { keys } = Object
  const { stringify } = JSON
  const most = 100

  function show(value, above) {
    if (typeof value === 'string') return above.length ? stringify(value) : value
    if (typeof value === 'bigint') return value + 'n'
    if (typeof value === 'function') return '[function ' + (value.name || 'without a name') + ']'
    if (typeof value !== 'object' || value === null) return String(value)
    if (above.includes(value)) return '[circular]'
    if (value instanceof Error) return nameOf(value)
    if (value instanceof Promise) return '[a promise that never settles]'
    if (value instanceof Date || value instanceof RegExp) return String(value)
    if (above.length > 3) return isArray(value) ? '[…]' : '{…}'
    const inner = [...above, value]
    if (value instanceof Map) {
      const pair = ([key, item]) => show(key, inner) + ' => ' + show(item, inner)
      return 'Map { ' + some([...value], pair) + ' }'
    }
    if (value instanceof Set) return 'Set { ' + some([...value], (item) => show(item, inner)) + ' }'
    if (isArray(value) || ArrayBuffer.isView(value)) {
      return '[' + some(value, (item) => show(item, inner)) + ']'
    }
    return '{ ' + some(keys(value), (key) => key + ': ' + show(value[key], inner)) + ' }'
  }

  function some(items, word) {
    const words = []
    for (let n = 0; n < items.length && n < most; n++) words.push(word(items[n]))
    if (items.length > most) words.push((items.length - most) + ' more')
    return words.join(', ')
  }

  function nameOf(error) {
    if (!(error instanceof Error)) return 'Thrown: ' + show(error, [])
    return error.message === '' ? String(error.name) : error.name + ': ' + error.message
  }

  function safely(make, otherwise) {
    try {
      return cut(make(), 0, 65000)
    } catch {
      return otherwise
    }
  }

  const unshown = '[something that cannot be shown]'
  const line = (...values) =>
    write(safely(() => values.map((value) => show(value, [])).join(' '), unshown) + '\n')
  globalThis.console = { log: line, info: line, warn: line, error: line, debug: line }
  globalThis.print = line

  const words = {
    value: (value) => safely(() => show(value, []), unshown),
    error: (error) => safely(() => nameOf(error), ''),
    stack: (error) => safely(() => error instanceof Error ? String(error.stack) : '', ''),
  }
  return (what, value) => words[what](value)
})
`
