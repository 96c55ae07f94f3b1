import { permissionModes } from './agent-permissions.ts'
import { unattendedRules } from './core/governor.ts'
import type { Guardrails } from './guardrails/guardrails.ts'
import type { RemoteGuard } from './guardrails/remote.ts'
import type { GuardRule } from './guardrails/rules.ts'
import {
  among,
  amount,
  anything,
  byName,
  either,
  type Field,
  field,
  fields,
  listOf,
  object,
  text,
  whole,
  yesNo,
} from './lib/fields.ts'
import type { AgentSettings, Settings, WorkflowSettings } from './settings.ts'

type Of<Key extends keyof Settings> = NonNullable<Settings[Key]>
type Price = Of<'prices'>[string]

const ms = amount(0)
const names = listOf(text)
const withNone = (most: Field, write: string) =>
  either(
    `${write}, or null for no limit`,
    most,
    field('null', (given) => given === null),
  )

const model = field(
  "the name of a model ('openai/gpt-5'), or a model",
  (given) =>
    (typeof given === 'string' && given !== '') || typeof given === 'function' || talks(given),
)
const talks = (given: unknown) =>
  typeof (given as { stream?: unknown } | null)?.stream === 'function'

const governor = fields<NonNullable<AgentSettings['governor']>>({
  isHitlEnabled: yesNo,
  actionLimit: whole(0),
  tokenLimit: withNone(whole(1), 'a whole number of 1 or more'),
  moneyLimit: withNone(
    field('', (given) => Number.isFinite(given) && Number(given) > 0),
    'a number over 0',
  ),
  unattended: yesNo,
  whenUnattended: among(...unattendedRules),
})

const tools = field('a list of tools, or tools by their names', (given) => {
  const all = typeof given === 'object' && given !== null ? Object.values(given) : [undefined]
  return all.every((one) => typeof one === 'object' && one !== null)
})

const setup = fields<AgentSettings>({
  agent: anything, // looked at beside those that come without a setup
  description: text,
  suggestions: names,
  version: text,
  model,
  apiKey: text,
  fallback: model,
  cheaper: model,
  governor,
  tools,
  mcp: names,
  permissionMode: among(...permissionModes),
  toolPermissions: byName(
    either(
      "allow, ask or deny, or what it may touch: ['read', 'write', 'execute']",
      among('allow', 'ask', 'deny'),
      listOf(among('read', 'write', 'execute')),
    ),
  ),
  allowedTools: names,
})

const agent: Field = (given, named) => {
  field("an agent, as toolLoop({ name: 'clerk' }), or { agent, ... }", isObject)(given, named)
  const has = 'agent' in (given as object)
  if (has) setup(given, named)
  const one = has ? (given as { agent: unknown }).agent : given
  const at = has ? `${named}.agent` : named
  field("an agent, as toolLoop({ name: 'clerk' })", (it) => {
    return isObject(it) && typeof (it as { run?: unknown }).run === 'function'
  })(one, at)
  text((one as { name?: unknown }).name, `${at}.name`)
}

const isObject = (given: unknown) => typeof given === 'object' && given !== null

const rules = listOf(
  fields<GuardRule>({
    id: text,
    decision: among('deny', 'allow'),
    words: names,
    pattern: either(
      'a regular expression',
      text,
      field('', (given) => given instanceof RegExp),
    ),
    topics: names,
    tool: text,
    reason: text,
  }),
)

const guardrails = fields<Guardrails>({
  input: rules,
  output: rules,
  arguments: rules,
  remote: fields<RemoteGuard>(
    { url: text, headers: byName(text), allow: names, deny: names, timeout: whole(1) },
    ['url'],
  ),
  classifier: field('a model', talks),
  whenAway: among('deny', 'allow'),
  redact: yesNo,
  lookBack: whole(0),
})

const workflow = fields<WorkflowSettings>({
  enableApprovalWorkflow: yesNo,
  maxConcurrentAgents: whole(1),
  approvalTimeout: whole(1),
  optional: listOf(among('zoho_scout', 'memory_analyst', 'recommendation_author')),
  model,
  apiKey: text,
  sessionTtl: whole(1),
})

/** All that a configuration may say. What is deeper is looked at by whoever uses it. */
export const settingFields = fields<Settings>({
  agents: listOf(agent),
  model,
  fallback: model,
  cheaper: model,
  tools,
  actions: listOf(object),
  builtIns: yesNo,
  mcp: byName(object),
  remote: listOf(object),
  workflow,
  policy: anything, // see core/policy-rules.ts
  retry: fields<Of<'retry'>>({
    attempts: whole(1),
    first: ms,
    factor: amount(1),
    most: ms,
    perRun: whole(0),
    rateLimit: ms,
  }),
  guardrails,
  providers: fields<Of<'providers'>>({
    concurrent: whole(1),
    waiting: whole(0),
    patience: ms,
    failures: whole(1),
    within: ms,
    rest: ms,
  }),
  silence: fields<Of<'silence'>>({ first: whole(1), between: whole(1), total: whole(1) }),
  sizes: fields<Of<'sizes'>>({ input: whole(1), message: whole(1) }),
  prices: byName(
    fields<Price>({ input: amount(0), output: amount(0), cachedInput: amount(0) }, [
      'input',
      'output',
    ]),
  ),
  windows: byName(whole(1)),
  maxOutput: byName(whole(1)),
  keepHeaders: names,
})
