import { lazily } from '../lib/lazily.ts'
import { aiSdkModel } from './ai-sdk/model.ts'
import { common, keyOf, type ModelMaker, type ProviderOptions } from './maker.ts'
import { keyMissing } from './openai.ts'

const reads = ['image/*', 'audio/*', 'video/*', 'application/pdf', 'text/*']

export function google(options: ProviderOptions): ModelMaker {
  return (around) => {
    const given = around.access.google
    const about = common('google', options, given, reads)
    const own = keyOf(options, given, around, about.name, 'GOOGLE_GENERATIVE_AI_API_KEY')
    const baseURL = options.baseUrl ?? given.baseUrl
    const sdk = (around.load ?? lazily)(() => import('@ai-sdk/google'))
    return aiSdkModel({
      ...about,
      meta: { under: 'google', fields: ['thoughtSignature'] },
      ...(options.providerOptions && { providerOptions: options.providerOptions }),
      async load(apiKey = own) {
        if (apiKey === '') throw keyMissing(about.name)
        const { createGoogleGenerativeAI } = await sdk()
        const provider = createGoogleGenerativeAI({ apiKey, ...(baseURL && { baseURL }) })
        return provider(options.model)
      },
    })
  }
}
