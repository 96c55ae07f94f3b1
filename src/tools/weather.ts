import { z } from 'zod'
import { defineTool } from '../core/tool.ts'

/** City, temperature in °C, sky, wind in km/h. Invented, and labelled so. */
const table: readonly [city: string, degrees: number, sky: string, wind: number][] = [
  ['Barcelona', 24, 'sunny', 12],
  ['Berlin', 17, 'cloudy', 18],
  ['Cairo', 33, 'clear and dry', 15],
  ['Lisbon', 22, 'sunny with a breeze', 24],
  ['London', 15, 'light rain', 20],
  ['Mexico City', 21, 'afternoon showers', 9],
  ['Nairobi', 23, 'partly cloudy', 14],
  ['New York', 19, 'clear', 16],
  ['Paris', 18, 'partly cloudy', 11],
  ['São Paulo', 25, 'thunderstorms', 10],
  ['Sydney', 20, 'sunny', 22],
  ['Tokyo', 22, 'overcast', 13],
]

export function weather() {
  return defineTool({
    name: 'weather',
    description: 'Tells the weather in a city, from a small table of sample data.',
    schema: z.strictObject({
      city: z.string().min(1).max(100).describe('The name of the city: Barcelona'),
    }),
    access: 'read',
    idempotent: true,
    describe: ({ city }) => `Look up the sample weather in ${city}`,
    run: async ({ city }) => {
      const found = table.find(([name]) => plain(name) === plain(city))
      if (!found) throw new Error(unknown(city))
      const [name, degrees, sky, wind] = found
      return `${name}: ${degrees} °C, ${sky}, wind ${wind} km/h (sample data, not a real forecast)`
    },
  })
}

const plain = (city: string) =>
  city.normalize('NFD').replace(/\p{M}/gu, '').trim().replace(/\s+/g, ' ').toLowerCase()

const unknown = (city: string) =>
  `There is no sample weather for ${city}. Known cities: ${table.map(([name]) => name).join(', ')}.`
