import type { Model } from '../core/model.ts'
import { ConfigError } from '../lib/config-error.ts'
import { anthropic } from './anthropic.ts'
import { demoModel } from './demo.ts'
import { emptyModel } from './empty.ts'
import { google } from './google.ts'
import type { Around, ModelMaker } from './maker.ts'
import { openai } from './openai.ts'
import { openaiCompatible } from './openai-compatible.ts'

/** How a configuration may say which model: by name, made there, or with what the server knows. */
export type ModelChoice = string | Model | ModelMaker

const providers: Record<string, (options: { model: string }) => ModelMaker> = {
  openai,
  anthropic,
  google,
  'openai-compatible': openaiCompatible,
}

/** The model that is meant, or one sentence that says what is missing. */
export function modelFor(choice: ModelChoice, around: Around): Model {
  if (typeof choice === 'function') return choice(around)
  if (typeof choice !== 'string') return choice
  if (choice === 'demo') return demoModel({ clock: around.clock, delay: around.demoDelay })
  if (choice === 'empty') return emptyModel
  const slash = choice.indexOf('/')
  const provider = choice.slice(0, Math.max(0, slash))
  const model = choice.slice(slash + 1)
  if (!Object.hasOwn(providers, provider) || model === '') {
    const forms = [...Object.keys(providers).map((one) => `${one}/<model>`), 'demo', 'empty']
    throw new ConfigError(`There is no model ${choice}. Write one of ${forms.join(', ')}.`)
  }
  return providers[provider]!({ model })(around)
}
