import type { SharedV3ProviderOptions } from '@ai-sdk/provider'
import { connectionSecrets } from '../core/connection-secrets.ts'
import type { Model } from '../core/model.ts'
import { digestOf } from '../lib/canonical.ts'
import type { Clock } from '../lib/clock.ts'
import { ConfigError } from '../lib/config-error.ts'
import { windowOf } from './windows.ts'

/** Where a provider is and what opens it. */
export interface Access {
  apiKey?: string
  baseUrl?: string
}

/** What models are made with: what the environment says, read once. */
export interface Around {
  clock: Clock
  access: Readonly<Record<'openai' | 'anthropic' | 'google', Access>>
  /** Clients bring their keys: the server may do without. */
  clientKeys: boolean
  /** OpenAI's API for models that do not say which. */
  openaiApi: 'chat' | 'responses'
  demoDelay: number
  /** Loads a module now. The server starts only if that succeeds: Node keeps a failed load for the life of the process. */
  load?: Load
}

/** Begins a load, and returns a function that gives its result. */
export type Load = <T>(load: () => Promise<T>) => () => Promise<T>

/** A model that is named in a configuration and made at the start, when keys are known. */
export type ModelMaker = (around: Around) => Model

/** Options of every provider. */
export interface ProviderOptions extends Access {
  model: string
  /** As it is named in journals and prices; `provider/model` by default. */
  name?: string
  accepts?: readonly string[]
  /** Tokens that request and answer may have together. */
  window?: number
  /** The provider's own options, under its name, as the AI SDK takes them. */
  providerOptions?: SharedV3ProviderOptions
}

/** What is the same for all: names, the window, and a key that must be there at the start. */
export function common(
  provider: string,
  options: ProviderOptions,
  given: Access,
  accepts: readonly string[],
) {
  const name = options.name ?? `${provider}/${options.model}`
  const apiKey = options.apiKey ?? given.apiKey ?? null
  const baseUrl = options.baseUrl ?? given.baseUrl ?? null
  return {
    name,
    provider,
    account: digestOf([apiKey, baseUrl]),
    secrets: connectionSecrets({ 'api-key': apiKey ?? '' }, baseUrl),
    accepts: options.accepts ?? accepts,
    window: options.window ?? windowOf(`${provider}/${options.model}`),
  }
}

export function keyOf(
  options: ProviderOptions,
  given: Access,
  { clientKeys }: Around,
  name: string,
  variable: string,
): string {
  const apiKey = options.apiKey ?? given.apiKey
  if (apiKey !== undefined) return apiKey
  if (clientKeys) return ''
  throw new ConfigError(`The model ${name} needs a key: set ${variable}.`)
}
