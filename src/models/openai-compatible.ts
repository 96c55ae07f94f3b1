import { ConfigError } from '../lib/config-error.ts'
import { lazily } from '../lib/lazily.ts'
import { aiSdkModel } from './ai-sdk/model.ts'
import { common, type ModelMaker, type ProviderOptions } from './maker.ts'

/** Any server that speaks OpenAI's chat API: Ollama, vLLM, LM Studio. It may need no key. */
export function openaiCompatible(options: ProviderOptions): ModelMaker {
  return (around) => {
    const given = around.access.openai
    const about = common('openai-compatible', options, given, ['image/*'])
    const baseURL = options.baseUrl ?? given.baseUrl
    if (baseURL === undefined) {
      throw new ConfigError(
        `The model ${about.name} needs an address: set OPENAI_BASE_URL, for example http://localhost:11434/v1.`,
      )
    }
    const sdk = (around.load ?? lazily)(() => import('@ai-sdk/openai'))
    return aiSdkModel({
      ...about,
      ...(options.providerOptions && { providerOptions: options.providerOptions }),
      async load(apiKey = options.apiKey ?? given.apiKey ?? 'none') {
        const { createOpenAI } = await sdk()
        return createOpenAI({ apiKey, baseURL }).chat(options.model)
      },
    })
  }
}
