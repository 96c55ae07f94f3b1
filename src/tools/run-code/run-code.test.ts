import { describe, expect, test } from 'vitest'
import { toolUse } from '../../../test/support/tool-use.ts'
import { runCode } from './run-code.ts'

const tool = runCode()

async function run(code: string, options: { tool?: typeof tool; signal?: AbortSignal } = {}) {
  const written: string[] = []
  const { signal = new AbortController().signal } = options
  const use = toolUse({ signal, write: (text) => void written.push(text) })
  const result: { output?: unknown; error?: string } = await (options.tool ?? tool)
    .run({ code }, use)
    .then(
      (output) => ({ output }),
      (error: Error) => ({ error: error.message }),
    )
  return { ...result, written }
}

describe('what code gives back', () => {
  test.each([
    ['1 + 1', '2'],
    ['print("a"); console.error("b", 2); 3', 'a\nb 2\n3'],
    [
      'console.log({ a: [1, "two", null], b: new Map([[1, new Set([2])]]) })',
      '{ a: [1, "two", null], b: Map { 1 => Set { 2 } } }\n',
    ],
    ['const a = {}; a.a = a; a', '{ a: [circular] }'],
    ['var x', 'The code ran and printed nothing.'],
    ['(async () => { await null; console.log("later"); return 7 })()', 'later\n7'],
    ['new Promise(() => {})', '[a promise that never settles]'],
    ['"\\u{1F600} é"', '😀 é'],
    ['10n ** 20n', '100000000000000000000n'],
    ['`line 1\nline 2`', 'line 1\nline 2'],
  ])('%s', async (code, output) => {
    expect(await run(code)).toMatchObject({ output })
  })

  test.each([
    ['\n\nnull.x', "TypeError: cannot read property 'x' of null (line 3)"],
    ['let a = 1\nlet b = ;', /^SyntaxError: .+ \(line 2\)$/],
    ['print("before"); throw new RangeError("no")', 'before\nRangeError: no (line 1)'],
    ['throw 5', 'Thrown: 5'],
    ['throw null', 'Thrown: null'],
    ['(async () => { throw new Error("late") })()', 'Error: late (line 1)'],
    ['throw { toString() { throw 1 }, get a() { throw 2 } }', '[something that cannot be shown]'],
  ])('an error: %s', async (code, error) => {
    expect((await run(code)).error).toEqual(
      typeof error === 'string' ? error : expect.stringMatching(error),
    )
  })

  test('streams what is printed while the code still runs', async () => {
    const controller = new AbortController()
    const started = performance.now()
    let after = 0
    const write = (text: string) => {
      expect(text).toBe('first\n')
      after = performance.now() - started
      controller.abort(new Error('seen enough'))
    }
    const code = 'print("first"); while (true);'
    await expect(tool.run({ code }, toolUse({ signal: controller.signal, write }))).rejects.toThrow(
      'seen enough',
    )
    expect(after).toBeGreaterThan(0)
    expect(performance.now() - started).toBeLessThan(2_000)
  })
})

describe('what code cannot reach', () => {
  test.each([
    'typeof process + typeof require + typeof fetch + typeof setTimeout + typeof WebAssembly',
    'typeof this.constructor.constructor("return typeof process")() && "undefined".repeat(5)',
  ])('%s', async (code) => {
    expect((await run(code)).output).toBe('undefined'.repeat(5))
  })

  test.each(['fs', 'node:fs', 'std', 'os', '/etc/passwd', 'data:text/javascript,1'])(
    'import(%j)',
    async (name) => {
      const { error } = await run(`import(${JSON.stringify(name)})`)
      expect(error).toMatch(/^(Reference|Type|Syntax)Error/)
    },
  )

  test('nothing stays from one run to the next', async () => {
    await run('globalThis.left = 1; Array.prototype.push = 2; Object.prototype.bad = 3')
    expect((await run('[typeof left, typeof [].push, typeof ({}).bad]')).output).toBe(
      '["undefined", "function", "undefined"]',
    )
  })

  test.each([
    'Function.prototype.call = Function.prototype.apply = () => { throw 1 }',
    'String.prototype.slice = Array.prototype.map = Array.prototype.join = () => "x".repeat(1e7)',
    'Object.defineProperty(Object.prototype, "length", { get() { throw 1 } })',
    'Array.prototype[Symbol.iterator] = function* () { while (true) yield 1 }; 0',
    'Error.prepareStackTrace = (e, frames) => { while (true) frames.push(1) }; 0',
    'Object.defineProperty(Error, Symbol.hasInstance, { value: () => true }); ({ name: {} })',
    'delete globalThis.console; globalThis.print = null',
  ])('spoiled prototypes spoil nothing outside: %s', async (code) => {
    await run(`${code}; throw new Error("tail")`)
    await run(code)
    expect((await run('print("fine"); 1')).output).toBe('fine\n1')
  })
})

describe('what code cannot use up', () => {
  const quick = runCode({ time: 600 })
  const patient = runCode({ time: 20_000 })

  test.each([
    ['a loop', 'while (true);'],
    ['a loop that catches', 'while (true) try { while (true); } catch {}'],
    ['endless promises', 'const f = () => { Promise.resolve().then(f) }; f()'],
    ['a loop in native code', 'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)'],
    ['regex backtracking', '/(a+)+$/.test("a".repeat(40) + "b")'],
    ['a loop while its value is shown', '({ get a() { while (true); } })'],
    ['a loop while its error is shown', 'throw { get a() { while (true); } }'],
    ['a loop of prints', 'while (true) print("x".repeat(1000))'],
  ])('time: %s', async (_name, code) => {
    const started = performance.now()
    expect((await run(code, { tool: quick })).error).toMatch(/ran longer than 0.6 s/)
    expect(performance.now() - started).toBeLessThan(2_500)
    expect((await run('1', { tool: quick })).output).toBe('1')
  })

  test.each([
    ['an array', 'const a = []; while (true) a.push([1, 2, 3])'],
    ['one buffer', 'new ArrayBuffer(1e9)'],
    ['many buffers', 'const a = []; while (true) a.push(new ArrayBuffer(1e5))'],
    ['a string', '"x".repeat(2 ** 29)'],
    ['promises that wait for each other', 'const f = () => Promise.resolve().then(f); f()'],
    ['bound functions', 'let f = () => 1; while (true) f = f.bind(null)'],
  ])('memory: %s', async (_name, code) => {
    const before = process.memoryUsage().rss
    expect((await run(code, { tool: patient })).error).toMatch(
      /^The code used up its memory \(64 MB\)/,
    )
    expect(process.memoryUsage().rss - before).toBeLessThan(250e6)
    expect((await run('1')).output).toBe('1')
  })

  test.each([
    ['calls', 'const f = () => f() + 1; f()'],
    ['eval', 'eval("(".repeat(1e5))'],
    ['arrays', 'eval("[".repeat(1e5) + "]".repeat(1e5))'],
    ['JSON', 'JSON.parse("[".repeat(1e6))'],
    ['proxies', 'let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x'],
    ['toString', 'const a = { toString: () => a + 1 }; a + 1'],
    ['flat', 'let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity)'],
    ['a replacer', 'const f = () => "a".replace(/a/, f); f()'],
    ['a sort', 'const f = () => [2, 1].sort(f); f()'],
    ['an accessor', 'const a = { get a() { return this.a } }; a.a'],
  ])('stack: %s', async (_name, code) => {
    expect((await run(code)).error).toMatch(/stack|too deep/i)
    expect((await run('1')).output).toBe('1')
  })

  test('output: it is cut, and the host keeps no more than that', async () => {
    const { output, written } = await run('for (let i = 0; i < 2e4; i++) print("é".repeat(9)); 1')
    expect(String(output)).toMatch(/\n?\[The rest of the output was cut after 64 KiB\.\]\n1$/)
    expect(Buffer.byteLength(String(output))).toBeLessThan(65_700)
    expect(Buffer.byteLength(written.join(''))).toBeLessThanOrEqual(65_536)
    expect(String(output)).not.toContain('\uFFFD')
  })

  test('a giant value and a giant print are cut', async () => {
    const { output } = await run('print("y".repeat(1e7)); "z".repeat(1e7)')
    expect(String(output).length).toBeLessThan(140_000)
  })

  test('what was printed before a kill is still told', async () => {
    const { error, written } = await run('print("one"); print("two"); while (true);', {
      tool: quick,
    })
    expect(error).toBe('one\ntwo\nThe code ran longer than 0.6 s and was stopped.')
    expect(written.join('')).toBe('one\ntwo\n')
  })

  test('a cancelled run stops at once, also one that waits for its turn', async () => {
    const controller = new AbortController()
    const started = performance.now()
    const runs = Array.from({ length: 10 }, () =>
      run('while (true);', { signal: controller.signal }),
    )
    setTimeout(() => controller.abort(new Error('cancelled')), 300)
    for (const { error } of await Promise.all(runs)) expect(error).toBe('cancelled')
    expect(performance.now() - started).toBeLessThan(2_500)
    expect((await run('1')).output).toBe('1')
  })

  test('many runs at once each get their own answer', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, (_, n) => run(`${n} * 2`)))
    expect(results.map((result) => result.output)).toEqual(results.map((_, n) => `${n * 2}`))
  })
})
