import { ChatOpenAI } from '@langchain/openai'
import {
  type ModelUnderTest,
  modelBasics,
  modelContract,
} from '../../test/contracts/model.contract.ts'
import { around } from '../../test/support/providers/around.ts'
import { fetchAdapter } from '../../test/support/providers/service-adapter.ts'
import { systemClock } from '../lib/clock.ts'
import { anthropic } from './anthropic.ts'
import { copilotkitAdapter } from './copilotkit-adapter.ts'
import { demoModel } from './demo.ts'
import { google } from './google.ts'
import { langchain } from './langchain.ts'
import { openai } from './openai.ts'
import { openaiCompatible } from './openai-compatible.ts'

const subjects: Record<string, ModelUnderTest> = {
  'openai chat': {
    wire: 'chat',
    open: ({ url }) => openai({ model: 'gpt-4o', api: 'chat' })(around(url)),
    images: true,
  },
  'openai responses': {
    wire: 'responses',
    open: ({ url }) => openai({ model: 'gpt-5' })(around(url)),
    images: true,
    reasoning: true,
  },
  anthropic: {
    wire: 'messages',
    open: ({ url }) => anthropic({ model: 'claude-sonnet-4-5' })(around(url)),
    images: true,
    reasoning: true,
  },
  google: {
    wire: 'gemini',
    open: ({ url }) => google({ model: 'gemini-2.5-flash' })(around(url)),
    images: true,
    reasoning: true,
    wholeCalls: true,
  },
  'openai-compatible': {
    wire: 'chat',
    open: ({ url }) => openaiCompatible({ model: 'llama3' })(around(url)),
    images: true,
  },
  langchain: {
    wire: 'chat',
    open: ({ url }) =>
      langchain(
        new ChatOpenAI({
          model: 'gpt-4o',
          apiKey: 'key',
          configuration: { baseURL: `${url}/v1` },
        }),
      ),
    images: true,
  },
  'service adapter': {
    wire: 'chat',
    open: ({ url }) => copilotkitAdapter(fetchAdapter(`${url}/v1`)),
    usage: false,
    closes: false,
    knowsItsEnd: false,
  },
}

modelBasics('demo', () => demoModel({ clock: systemClock, delay: 1, slow: 100 }), 'Be slow')
for (const [name, subject] of Object.entries(subjects)) modelContract(name, subject)
