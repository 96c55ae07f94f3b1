import { systemClock } from '../../../src/lib/clock.ts'
import type { Around } from '../../../src/models/maker.ts'

/** As the environment would say it: all three providers at one address. */
export const around = (url: string): Around => ({
  clock: systemClock,
  access: {
    openai: { apiKey: 'key', baseUrl: `${url}/v1` },
    anthropic: { apiKey: 'key', baseUrl: `${url}/v1` },
    google: { apiKey: 'key', baseUrl: `${url}/v1beta` },
  },
  clientKeys: false,
  openaiApi: 'responses',
  demoDelay: 0,
})
