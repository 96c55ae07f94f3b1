/**
 * The worker as text: a file of its own would be `.ts` under tsx and Vitest and `.js` when built,
 * and a worker does not take its parent's loader. It is handed:
 *
 * - `workerData`: where QuickJS is, the memory limit in 64 KiB pages, and `prelude.ts`;
 * - per run a message `{ code, shared }`. `shared` takes the output: three Int32 (bytes written,
 *   whether some were cut, whether the host was told), then room for the bytes. So what was
 *   printed is there even when the worker is killed, and no flood can grow it.
 *
 * It posts `'ready'` once, `'more'` when there is output to fetch, and at the end of each run
 * `{ type, text, line, spent }`. `spent` says not to use this worker again.
 */
export const workerSource = String.raw`
'use strict'
const { parentPort, workerData } = require('node:worker_threads')
const { newQuickJSWASMModuleFromVariant, newVariant, RELEASE_SYNC, Scope } =
  require(workerData.quickjs)

const longest = 65536 // characters that leave the sandbox in one piece
const initial = 256
const memory = new WebAssembly.Memory({ initial, maximum: workerData.pages })
const unshown = '[something that cannot be shown]'
const encoder = new TextEncoder()

start()

async function start() {
  const variant = newVariant(RELEASE_SYNC, { wasmMemory: memory })
  const engine = await newQuickJSWASMModuleFromVariant(variant)
  parentPort.on('message', (job) => parentPort.postMessage(run(engine, job)))
  parentPort.postMessage('ready')
}

function run(engine, job) {
  let ending = { type: 'broken' }
  try {
    Scope.withScope((scope) => { ending = evaluate(engine, scope, job) })
  } catch {
    // The engine gave up where it has no way to say so in the language.
    return { ...ending, spent: true }
  }
  const grown = memory.buffer.byteLength > initial * 65536 * 2 // it never shrinks again
  return { ...ending, spent: grown || ending.type === 'broken' }
}

function evaluate(engine, scope, { code, shared }) {
  const runtime = scope.manage(engine.newRuntime({ maxStackSizeBytes: 256 * 1024 }))
  const context = scope.manage(runtime.newContext())
  const must = (result) => scope.manage(context.unwrapResult(result))
  const print = printer(shared)
  const write = scope.manage(context.newFunction('write', (text) => print(textOf(context, text))))
  const prelude = must(context.evalCode(workerData.prelude, 'prelude.js', { type: 'global' }))
  const tell = must(context.callFunction(prelude, context.undefined, write))

  const told = (what, handle) => {
    const kind = scope.manage(context.newString(what))
    const result = context.callFunction(tell, context.undefined, kind, handle)
    scope.manage(result.error ?? result.value)
    return result.error ? '' : textOf(context, result.value)
  }
  const thrown = (error) => {
    scope.manage(error)
    const text = told('error', error)
    // An engine without room for an error throws null.
    if (full() && (text === '' || context.eq(error, context.null))) return { type: 'broken' }
    if (text === '') return { type: 'thrown', text: unshown }
    const line = /code\.js:(\d+)/.exec(told('stack', error))
    return { type: 'thrown', text, line: line ? Number(line[1]) : undefined }
  }
  const returned = (value) => {
    if (context.typeof(value) === 'undefined') return { type: 'returned' }
    return { type: 'returned', text: told('value', value) }
  }

  const result = context.evalCode(code, 'code.js', { type: 'global' })
  if (result.error) return thrown(result.error)
  const value = scope.manage(result.value)
  const jobs = runtime.executePendingJobs()
  if (jobs.error) return thrown(jobs.error)
  const promise = context.getPromiseState(value)
  if (promise.type === 'rejected') return thrown(promise.error)
  if (promise.type === 'pending' || promise.notAPromise) return returned(value)
  return returned(scope.manage(promise.value))
}

/** Then there is no room left to say in the language what went wrong. */
function full() {
  return memory.buffer.byteLength > workerData.pages * 65536 * 0.9
}

/** Only text comes out, and never more than there is room for. */
function textOf(context, handle) {
  if (context.typeof(handle) !== 'string') return ''
  const length = context.getProp(handle, 'length').consume((size) => context.getNumber(size))
  return length > longest ? '' : context.getString(handle)
}

function printer(shared) {
  const head = new Int32Array(shared, 0, 3)
  const room = new Uint8Array(shared, 12)
  return (text) => {
    if (head[1] === 1) return
    const { read, written } = encoder.encodeInto(text, room.subarray(head[0]))
    Atomics.add(head, 0, written)
    if (read < text.length) Atomics.store(head, 1, 1)
    if (Atomics.exchange(head, 2, 1) === 0) parentPort.postMessage('more')
  }
}
`
