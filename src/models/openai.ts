import { RuntimeError } from '../core/errors.ts'
import { lazily } from '../lib/lazily.ts'
import { aiSdkModel } from './ai-sdk/model.ts'
import { common, keyOf, type ModelMaker, type ProviderOptions } from './maker.ts'

export interface OpenAiOptions extends ProviderOptions {
  /** `responses` shows what the model thinks; `chat` is what others imitate. */
  api?: 'chat' | 'responses'
}

export function openai(options: OpenAiOptions): ModelMaker {
  return (around) => {
    const given = around.access.openai
    const about = common('openai', options, given, ['image/*', 'application/pdf'])
    const own = keyOf(options, given, around, about.name, 'OPENAI_API_KEY')
    const api = options.api ?? around.openaiApi
    const baseURL = options.baseUrl ?? given.baseUrl
    // Nothing is left at the provider: a history can be edited, and outlives what is kept there.
    const wishes = { store: false, ...options.providerOptions?.openai }
    const sdk = (around.load ?? lazily)(() => import('@ai-sdk/openai'))
    return aiSdkModel({
      ...about,
      meta: { under: 'openai', fields: ['itemId', 'reasoningEncryptedContent', 'phase'] },
      providerOptions: { ...options.providerOptions, openai: wishes },
      async load(apiKey = own) {
        if (apiKey === '') throw keyMissing(about.name)
        const { createOpenAI } = await sdk()
        const provider = createOpenAI({ apiKey, ...(baseURL !== undefined && { baseURL }) })
        return api === 'chat' ? provider.chat(options.model) : provider.responses(options.model)
      },
    })
  }
}

export const keyMissing = (name: string) =>
  new RuntimeError('authentication', `Nobody gave a key for the model ${name}.`)
