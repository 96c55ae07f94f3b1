import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigError } from '../config.ts'
import { loadSettings } from '../load-settings.ts'
import { policyOf, type Settings, toolsFrom } from '../settings.ts'
import { builtInTools } from '../tools/index.ts'
import { ageOf, type Command, counted } from './command.ts'
import { withReader } from './reading.ts'
import { nothing, type Otherwise, type Replayed, replay } from './replay.ts'

/**
 * `handrail policy test [--config new.config.mjs] [--since 90d] [--json]`: what a policy would have said of
 * calls that were asked about, and of those that were not. Reads only; a server may be running.
 */
export async function policy(command: Command): Promise<number> {
  const { config, say, progress } = command
  const { named, age, json } = read(command.args)
  if (named !== undefined && !existsSync(named))
    throw new ConfigError(`--config: there is no file ${named}.`)
  const settings = await loadSettings(named ?? config.configFile)
  const given = {
    policy: policyOf(settings),
    tools: new Map(toolsOf(settings, config.data).map((tool) => [tool.name, tool])),
    servers: Object.keys(settings.mcp ?? {}),
    since: age === undefined ? 0 : Date.now() - age,
  }
  const found = nothing()
  await withReader(config, async (reader) => {
    for await (const threadId of reader.threadIds()) {
      await replay(reader.entries(threadId), given, found)
      progress(`${counted(found.threads, 'thread')} read`)
    }
  })
  const since = age === undefined ? undefined : new Date(given.since).toISOString()
  if (json) say(JSON.stringify({ since, ...found }))
  else for (const line of told(found, since)) say(line)
  return 0
}

function toolsOf(settings: Settings, data: string) {
  const own = (settings.agents ?? []).flatMap((one) =>
    'agent' in one ? toolsFrom(one.tools ?? []) : [],
  )
  const builtIns = settings.builtIns === false ? [] : builtInTools({ root: join(data, 'files') })
  return [...own, ...builtIns, ...toolsFrom(settings.tools ?? [], settings.actions)]
}

function told({ asks, calls, threads, unread }: Replayed, since: string | undefined): string[] {
  const { allow, ask, deny } = asks
  const total = allow.total + ask.total + deny.total
  const all = calls.allow + calls.ask + calls.deny
  const when = since === undefined ? '' : ` since ${since.slice(0, 10)}`
  const of = (n: number) => `${n.toLocaleString('en')} of ${total.toLocaleString('en')}`
  return [
    `${counted(total, 'approval')} asked for${when}, in ${counted(threads, 'thread')}.`,
    `Would have auto-approved ${of(allow.total)}, of which you rejected ${these(allow.rejected)}`,
    ...allow.others.map(line),
    ...more(allow.rejected - allow.others.length),
    `Would have denied ${of(deny.total)}, of which you approved ${these(deny.approved)}`,
    ...deny.others.map(line),
    ...more(deny.approved - deny.others.length),
    `Would still ask about ${of(ask.total)}.`,
    `Of ${counted(all, 'call')} that asked nobody, ${calls.ask} would be asked about and ${calls.deny} denied.`,
    ...(unread > 0 ? [`${counted(unread, 'thread')} could not be read to the end.`] : []),
  ]
}

const these = (n: number) => (n === 0 ? 'none.' : n === 1 ? '1: this one' : `${n}: these`)

const more = (left: number) => (left > 0 ? [`  and ${left.toLocaleString('en')} more`] : [])

const line = ({ at, thread, title, rule, by, reason }: Otherwise) =>
  `  ${at.slice(0, 16).replace('T', ' ')}  ${thread}  ${title}  (${by}${reason === undefined ? '' : `: ${reason}`}; now by ${rule})`

function read(args: string[]) {
  const [what, ...rest] = args
  if (what !== 'test') throw new ConfigError('Say what to do: handrail policy test.')
  const options = {
    config: { type: 'string' },
    since: { type: 'string' },
    json: { type: 'boolean', default: false },
  } as const
  let values: ReturnType<typeof parseArgs<{ options: typeof options }>>['values']
  try {
    values = parseArgs({ args: rest, options }).values
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
  const age = values.since === undefined ? undefined : ageOf(values.since)
  if (values.since !== undefined && age === undefined)
    throw new ConfigError('Say since when: --since 90d (m, h, d or w).')
  return { named: values.config, age, json: values.json }
}
