import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { readApiKeys } from './api-keys.ts'
import type { StartingBudget } from './core/agent-setups.ts'
import { type UnattendedRule, unattendedRules } from './core/governor.ts'
import type { Caller } from './core/runtime.ts'
import {
  address,
  basePath,
  limit,
  milliseconds,
  money,
  onOff,
  origins,
  whole,
} from './env-fields.ts'
import { ConfigError } from './lib/config-error.ts'
import { heapShare } from './lib/heap.ts'
import type { Access } from './models/maker.ts'
import type { ZohoAccess } from './tools/zoho/client.ts'
import { keyFrom } from './webhooks/signature.ts'

export { ConfigError }

/** Everything the environment may say, read here and nowhere else. */
export interface Config {
  port: number
  host: string
  data: string
  spool: string
  /** Where Postgres is; without it the store is files in `data`. */
  database: { url: string; schema: string; connections: number } | undefined
  /** Where Redis is; without it, tails and doorbells are this process's own. */
  redis: string | undefined
  logLevel: string
  /** A file that exports agents, tools and policy. */
  configFile: string | undefined
  apiKeys: ReadonlyMap<string, Omit<Caller, 'wire'>>
  bodyLimit: number
  maxLegs: number
  /** Bytes of threads that stay in memory between requests. */
  cacheBytes: number
  /** Legs at once, of all servers together and of one tenant. */
  legLimits: { total?: number; perTenant?: number }
  leaseTtl: number
  /** How long a server that stops still takes requests, so that whoever sends them here hears of it. */
  grace: number
  /** How long what it is doing may take to come to an end. */
  drain: number
  demoDelay: number
  /** `openai/gpt-5` and the like; the configuration file may name others. */
  model: string | undefined
  fallbackModel: string | undefined
  access: Readonly<Record<'openai' | 'anthropic' | 'google', Access>>
  openaiApi: 'chat' | 'responses'
  /** Clients may bring the key for the model of their runs. */
  clientKeys: boolean
  /** Origins of pages that may call us, besides those of this machine; `*` for all, `none` for no others of this machine. */
  origins: ReadonlySet<string>
  basePath: string
  aguiBusy: 'reject' | 'queue'
  graphql: {
    stop: { rule: 'grace' | 'cancel' | 'continue'; grace: number }
    introspection: boolean
    graphiql: boolean
    publicKey: string | undefined
  }
  heartbeat: number
  /** How long what was made of a thread is kept, in milliseconds. */
  sessionTtl: number
  /** A segment of the file store's commit log ends when it is longer. */
  segmentBytes: number
  governor: StartingBudget
  whenUnattended: UnattendedRule
  /** Model calls outside of threads that a user may make in a day. */
  userLimit: number | undefined
  /** Zoho CRM, where its credentials are set. */
  zoho: ZohoAccess | undefined
  /** Where notices of asks go. */
  webhook:
    | { url: string; secret: string; about: 'raised' | 'both'; again: number; publicUrl?: string }
    | undefined
  /** Whether entries are linked, and the secrets for it, the newest first. */
  audit: { on: boolean; secrets: readonly string[] }
  /** `point:occurrence`, for tests: the process kills itself there. */
  crash: string | undefined
}

const model = address('https://host/v1')

const schema = z.object({
  PORT: whole(8000, 0, undefined, 65_535),
  HOST: z.string().min(1).optional(),
  HANDRAIL_DATA: z.string().min(1).default('./data'),
  HANDRAIL_SPOOL: z.string().min(1).optional(),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must look like postgresql://user:password@host:5432/database')
    .optional(),
  HANDRAIL_DATABASE_SCHEMA: z.string().min(1).max(63).default('handrail'),
  HANDRAIL_DATABASE_CONNECTIONS: whole(10, 2),
  REDIS_URL: z
    .string()
    .regex(/^rediss?:\/\//, 'must look like redis://user:password@host:6379')
    .optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  HANDRAIL_CONFIG: z.string().min(1).optional(),
  HANDRAIL_API_KEYS: z.string().default(''),
  HANDRAIL_MAX_BODY: whole(4 * 1024 * 1024, 1, 'bytes'),
  HANDRAIL_MAX_LEGS: whole(256, 1),
  HANDRAIL_CACHE_BYTES: whole(heapShare(1 / 8), 1, 'bytes'),
  HANDRAIL_TOTAL_LEGS: limit,
  HANDRAIL_TENANT_LEGS: limit,
  HANDRAIL_LEASE_MS: whole(15_000, 100, 'milliseconds'),
  HANDRAIL_GRACE_MS: milliseconds,
  HANDRAIL_DRAIN_MS: whole(5_000, 0, 'milliseconds'),
  HANDRAIL_DEMO_DELAY_MS: whole(15, 0, 'milliseconds'),
  HANDRAIL_MODEL: z.string().min(1).optional(),
  HANDRAIL_FALLBACK_MODEL: z.string().min(1).optional(),
  HANDRAIL_OPENAI_API: z.enum(['chat', 'responses']).default('responses'),
  HANDRAIL_CLIENT_KEYS: onOff('off'),
  OPENAI_API_KEY: z.string().optional(),
  OPENAI_BASE_URL: model,
  ANTHROPIC_API_KEY: z.string().optional(),
  ANTHROPIC_BASE_URL: model,
  GOOGLE_GENERATIVE_AI_API_KEY: z.string().optional(),
  GEMINI_API_KEY: z.string().optional(),
  GOOGLE_API_KEY: z.string().optional(),
  GOOGLE_BASE_URL: model,
  ZOHO_CLIENT_ID: z.string().optional(),
  ZOHO_CLIENT_SECRET: z.string().optional(),
  ZOHO_REFRESH_TOKEN: z.string().optional(),
  ZOHO_ACCOUNTS_URL: address('https://accounts.zoho.eu'),
  ZOHO_API_URL: address('https://www.zohoapis.eu'),
  HANDRAIL_SESSION_TTL: whole(3_600, 1, 'seconds'),
  HANDRAIL_HEARTBEAT_MS: whole(15_000, 10, 'milliseconds'),
  HANDRAIL_SEGMENT_BYTES: whole(16 * 1024 * 1024, 1_024, 'bytes'),
  HANDRAIL_CORS_ORIGINS: origins,
  HANDRAIL_BASE_PATH: basePath,
  HANDRAIL_AGUI_BUSY: z.enum(['reject', 'queue']).default('reject'),
  HANDRAIL_GRAPHQL_STOP: z.enum(['grace', 'cancel', 'continue']).default('grace'),
  HANDRAIL_GRAPHQL_GRACE_MS: whole(3_000, 0, 'milliseconds'),
  HANDRAIL_INTROSPECTION: onOff('on'),
  HANDRAIL_GRAPHIQL: onOff('on'),
  HANDRAIL_PUBLIC_API_KEY: z.string().min(1).optional(),
  HANDRAIL_HITL: onOff('off'),
  HANDRAIL_ACTION_LIMIT: whole(10),
  HANDRAIL_TOKEN_LIMIT: limit,
  HANDRAIL_MONEY_LIMIT: money,
  HANDRAIL_UNATTENDED: z.enum(unattendedRules).default('ask'),
  HANDRAIL_USER_LIMIT: limit,
  HANDRAIL_WEBHOOK_URL: address('https://host/path'),
  HANDRAIL_WEBHOOK_SECRET: z.string().optional(),
  HANDRAIL_WEBHOOK_EVENTS: z.enum(['raised', 'all']).default('raised'),
  HANDRAIL_WEBHOOK_RETRY_MS: whole(15_000, 1, 'milliseconds'),
  HANDRAIL_PUBLIC_URL: address('https://host'),
  HANDRAIL_AUDIT: onOff('on'),
  HANDRAIL_AUDIT_KEY: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter(Boolean))
    .refine((keys) => keys.every((key) => key.length >= 32), 'must have 32 characters or more')
    .optional(),
  HANDRAIL_CRASH: z.string().optional(),
})

/** The names of all that may be set. */
export const variables: readonly string[] = Object.keys(schema.shape)

export function readConfig(env: Record<string, string | undefined>): Readonly<Config> {
  const given = Object.entries(env).filter(([, value]) => value !== undefined && value !== '')
  const parsed = schema.safeParse(Object.fromEntries(given))
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!
    throw new ConfigError(`${issue.path.join('.')}: ${issue.message}`)
  }
  const read = parsed.data
  const apiKeys = readApiKeys(read.HANDRAIL_API_KEYS)
  const host = read.HOST ?? (apiKeys.size > 0 ? '0.0.0.0' : '127.0.0.1')
  if (apiKeys.size === 0 && !isLoopback(host)) {
    throw new ConfigError(
      `HOST=${host} would let anyone in: set HANDRAIL_API_KEYS, or leave HOST out to listen on this machine only.`,
    )
  }
  return Object.freeze({
    port: read.PORT,
    host,
    data: resolve(read.HANDRAIL_DATA),
    spool: read.HANDRAIL_SPOOL ?? join(tmpdir(), 'handrail-spool'),
    database: read.DATABASE_URL === undefined ? undefined : databaseOf(read.DATABASE_URL, read),
    redis: read.REDIS_URL,
    logLevel: read.LOG_LEVEL,
    configFile: read.HANDRAIL_CONFIG,
    apiKeys,
    bodyLimit: read.HANDRAIL_MAX_BODY,
    maxLegs: read.HANDRAIL_MAX_LEGS,
    cacheBytes: read.HANDRAIL_CACHE_BYTES,
    legLimits: {
      ...(read.HANDRAIL_TOTAL_LEGS !== undefined && { total: read.HANDRAIL_TOTAL_LEGS }),
      ...(read.HANDRAIL_TENANT_LEGS !== undefined && { perTenant: read.HANDRAIL_TENANT_LEGS }),
    },
    leaseTtl: read.HANDRAIL_LEASE_MS,
    // Alone, there is nobody to send them to.
    grace: read.HANDRAIL_GRACE_MS ?? (read.REDIS_URL === undefined ? 0 : 3_000),
    drain: read.HANDRAIL_DRAIN_MS,
    demoDelay: read.HANDRAIL_DEMO_DELAY_MS,
    model: read.HANDRAIL_MODEL,
    fallbackModel: read.HANDRAIL_FALLBACK_MODEL,
    access: accessOf(read),
    openaiApi: read.HANDRAIL_OPENAI_API,
    clientKeys: read.HANDRAIL_CLIENT_KEYS === 'on',
    origins: originsOf(read, apiKeys.size > 0),
    basePath: read.HANDRAIL_BASE_PATH,
    aguiBusy: read.HANDRAIL_AGUI_BUSY,
    graphql: {
      stop: { rule: read.HANDRAIL_GRAPHQL_STOP, grace: read.HANDRAIL_GRAPHQL_GRACE_MS },
      introspection: read.HANDRAIL_INTROSPECTION === 'on',
      graphiql: read.HANDRAIL_GRAPHIQL === 'on',
      publicKey: read.HANDRAIL_PUBLIC_API_KEY,
    },
    sessionTtl: read.HANDRAIL_SESSION_TTL * 1_000,
    heartbeat: read.HANDRAIL_HEARTBEAT_MS,
    segmentBytes: read.HANDRAIL_SEGMENT_BYTES,
    governor: {
      isHitlEnabled: read.HANDRAIL_HITL === 'on',
      actionLimit: read.HANDRAIL_ACTION_LIMIT,
      ...(read.HANDRAIL_TOKEN_LIMIT !== undefined && { tokenLimit: read.HANDRAIL_TOKEN_LIMIT }),
      ...(read.HANDRAIL_MONEY_LIMIT !== undefined && { moneyLimit: read.HANDRAIL_MONEY_LIMIT }),
    },
    whenUnattended: read.HANDRAIL_UNATTENDED,
    userLimit: read.HANDRAIL_USER_LIMIT,
    zoho: zohoOf(read),
    webhook: webhookOf(read),
    audit: { on: read.HANDRAIL_AUDIT === 'on', secrets: read.HANDRAIL_AUDIT_KEY ?? [] },
    crash: read.HANDRAIL_CRASH,
  })
}

/** Pages that may call us, with the one of our own address behind a proxy. */
function originsOf(read: z.infer<typeof schema>, keyed: boolean): Config['origins'] {
  const listed = read.HANDRAIL_CORS_ORIGINS
  const open = listed.find((one) => one === '*' || one === 'null')
  if (open !== undefined && !keyed)
    throw new ConfigError(
      `HANDRAIL_CORS_ORIGINS=${open} would let every web page use this server: set HANDRAIL_API_KEYS, or list the origins of your pages, such as https://app.example.org.`,
    )
  const own =
    read.HANDRAIL_PUBLIC_URL === undefined ? [] : [new URL(read.HANDRAIL_PUBLIC_URL).origin]
  return new Set([...listed, ...own])
}

function webhookOf(read: z.infer<typeof schema>): Config['webhook'] {
  const { HANDRAIL_WEBHOOK_URL: url, HANDRAIL_WEBHOOK_SECRET: secret } = read
  if (url === undefined) return undefined
  if (secret === undefined || keyFrom(secret).length < 24)
    throw new ConfigError(
      'HANDRAIL_WEBHOOK_SECRET: give at least 24 bytes, as whsec_<base64> or as text, to sign what is sent.',
    )
  const publicUrl = read.HANDRAIL_PUBLIC_URL?.replace(/\/+$/, '')
  return {
    ...{ url, secret, again: read.HANDRAIL_WEBHOOK_RETRY_MS },
    about: read.HANDRAIL_WEBHOOK_EVENTS === 'all' ? 'both' : 'raised',
    ...(publicUrl !== undefined && { publicUrl }),
  }
}

/** All of them or none: half of a set of credentials is a mistake. */
function zohoOf(read: z.infer<typeof schema>): ZohoAccess | undefined {
  const { ZOHO_CLIENT_ID: clientId, ZOHO_CLIENT_SECRET: clientSecret } = read
  const { ZOHO_REFRESH_TOKEN: refreshToken, ZOHO_API_URL: api } = read
  if (!clientId && !clientSecret && !refreshToken) return undefined
  if (!clientId || !clientSecret || !refreshToken)
    throw new ConfigError(
      'ZOHO_CLIENT_ID, ZOHO_CLIENT_SECRET and ZOHO_REFRESH_TOKEN belong together: set all three, or none.',
    )
  const accountsUrl = bare(read.ZOHO_ACCOUNTS_URL ?? 'https://accounts.zoho.com')
  const apiUrl = api === undefined ? {} : { apiUrl: bare(api) }
  return { clientId, clientSecret, refreshToken, accountsUrl, ...apiUrl }
}

const bare = (url: string) => url.replace(/\/+$/, '')

function accessOf(read: z.infer<typeof schema>): Config['access'] {
  const access = (apiKey: string | undefined, baseUrl: string | undefined): Access => ({
    ...(apiKey !== undefined && { apiKey }),
    ...(baseUrl !== undefined && { baseUrl: baseUrl.replace(/\/+$/, '') }),
  })
  const google = read.GOOGLE_GENERATIVE_AI_API_KEY ?? read.GEMINI_API_KEY ?? read.GOOGLE_API_KEY
  return {
    openai: access(read.OPENAI_API_KEY, read.OPENAI_BASE_URL),
    anthropic: access(read.ANTHROPIC_API_KEY, read.ANTHROPIC_BASE_URL),
    google: access(google, read.GOOGLE_BASE_URL),
  }
}

const databaseOf = (url: string, read: z.infer<typeof schema>) => ({
  url,
  schema: read.HANDRAIL_DATABASE_SCHEMA,
  connections: read.HANDRAIL_DATABASE_CONNECTIONS,
})

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
