import { lazily } from '../lib/lazily.ts'
import { aiSdkModel } from './ai-sdk/model.ts'
import { common, keyOf, type ModelMaker, type ProviderOptions } from './maker.ts'
import { keyMissing } from './openai.ts'

export function anthropic(options: ProviderOptions): ModelMaker {
  return (around) => {
    const given = around.access.anthropic
    const about = common('anthropic', options, given, ['image/*', 'application/pdf', 'text/plain'])
    const own = keyOf(options, given, around, about.name, 'ANTHROPIC_API_KEY')
    const baseURL = options.baseUrl ?? given.baseUrl
    const sdk = (around.load ?? lazily)(() => import('@ai-sdk/anthropic'))
    return aiSdkModel({
      ...about,
      dropsTools: true,
      meta: { under: 'anthropic', fields: ['signature', 'redactedData'] },
      ...(options.providerOptions && { providerOptions: options.providerOptions }),
      async load(apiKey = own) {
        if (apiKey === '') throw keyMissing(about.name)
        const { createAnthropic } = await sdk()
        return createAnthropic({ apiKey, ...(baseURL !== undefined && { baseURL }) })(options.model)
      },
    })
  }
}
