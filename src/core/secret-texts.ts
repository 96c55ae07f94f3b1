import { isSecretName, maybeSecretName } from './secret-names.ts'

/** Characters of text that are examined for one request: for forms of keys, and for settings and JSON. */
export interface TextBudget {
  left: number
  settings: number
}
export const textBudget = (): TextBudget => ({ left: 524_288, settings: 65_536 })

/**
 * Whether a text is or contains a secret: a key or token by its form, an address with a password, or a setting such as `api_key=...`. JSON
 * text is parsed, and `holds` decides about its value. Texts beyond the budget count as secrets:
 * no request may block the server for long.
 */
export function isSecretText(
  text: string,
  budget: TextBudget,
  holds: (value: unknown) => boolean,
): boolean {
  if (text.length < minText) return false
  budget.left -= text.length
  if (budget.left < 0) return true
  if (secretForm.test(text)) return true
  if (text.length <= maxKey && secretKey.test(text.trim())) return true
  if (spokenIn(text).next().done === false) return true
  if (!maybeSetting(text)) return false
  budget.settings -= text.length
  if (budget.settings < 0) return true
  return holdsInJson(text, holds) || settingsIn(text).next().done === false
}

/**
 * The text with `[secret]` in the place of each secret, or of the whole text if it is beyond the budget. Prose may be long, so one pass of
 * fixed patterns finds the secrets; it knows fewer names than `isSecretName`.
 */
export function withoutSecretsIn(text: string, budget: TextBudget): string {
  budget.left -= text.length
  if (budget.left < 0) return redacted
  const open = text.replace(everySecretForm, redacted).replace(namedValue, `$1${redacted}`)
  const parts: string[] = []
  let end = 0
  for (const [from, to] of spokenIn(open)) {
    parts.push(open.slice(end, from), redacted)
    end = to
  }
  return [...parts, open.slice(end)].join('')
}

const namedValue =
  /((?:token|secret|passw(?:or)?d|passphrase|pwd|(?:api|access|private|secret|signing)[-_ ]?key|auth|authori[sz]ation|credentials?|jwt|session[-_]?id|signature)["'\\]{0,5}\s{0,4}[=:]\s{0,4}["'\\]{0,5}|cookie\s{0,4}:\s{0,4}(?=[^\n]))(?:(?<=cookie[\s:]{1,9})[^\n]+|[[{][^\n]*|(?:(?:bearer|basic)\s{1,4})?[^\s"'&;,\\]{4,})/gi

/** The secrets in a secret text, without what is around them: `Bearer abc` → abc, `x://user:abc@host` → abc. */
export function secretsWithin(text: string): string[] {
  if (text.length > maxParts) return []
  const parts = [/^\w+\s+(\S+)$/, /:\/\/[^\s/?#@:]*:?([^\s/?#@]+)@/].map(
    (form) => form.exec(text)?.[1],
  )
  const values = [...settingsIn(text), ...spokenIn(text)].map(([from, to]) => text.slice(from, to))
  return [...parts, ...values].filter((one) => one !== undefined)
}

/** Written in the place of a secret in a list or text, so that the rest keeps its place. */
export const redacted = '[secret]'

const minText = 6
/** Characters of a key, at most, and of a text that is taken apart. */
const maxKey = 1_024
const maxParts = 16_384

/** Forms of keys, tokens and passwords anywhere in a text. Each repetition has a limit or a first letter that is rare. */
const secretForm = new RegExp(
  [
    /\bbearer\s{1,4}[\w.~+/=-]{16,}/,
    /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*/, // a JSON web token
    /\b(?:sk|pk|rk|whsec|xox[a-z]|xapp|gh[a-z]|glpat|hf|npm|dop_v1|shp[a-z]{2}|github_pat|pypi|gsk|xai|lsv2|nvapi)[-_](?=[\w-]{0,20}\d)[\w-]{14,}/,
    /\b(?:AKIA|ASIA)[A-Z\d]{16}\b/,
    /\bAIza[\w-]{30,}/,
    /\bya29\.[\w-]{8,}/,
    /\bSG\.[\w-]{16,}\.[\w-]{16,}/,
    /hooks\.slack\.com\/services\/[\w/]{8,}/,
    /:\/\/[^\s/?#@:]{0,256}:[^\s/?#@]{1,1024}@/, // an address with a password
    /:\/\/[\w.~%-]{16,1024}@/, // or with a token
    /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[\w\s+/=]{0,20000}-----END [A-Z ]{0,40}PRIVATE KEY-----)?/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
)

/** Forms that are too common in prose to count inside of it: the whole text is the key. */
const secretKey =
  /^(?:bearer\s+\S+|(?:basic|token|negotiate|apikey)\s+\S{6,}|eyJ[\w-]{4,}\.[\w-]+\.[\w-]*|(?:sk|pk|rk|whsec|xox[a-z]|xapp|gh[a-z]|glpat|hf|npm|dop_v1|shp[a-z]{2}|github_pat)[-_][\w-]{8,})$/i

const everySecretForm = new RegExp(secretForm, 'gi')

/** Whether the text has a name that may be one of a secret, and a sign that ends a name. */
const maybeSetting = (text: string): boolean =>
  /[=:[]|--/.test(text) && (maybeSecretName.test(text) || /[?&#]key=/i.test(text))

/** Where the values of secret settings are: in addresses, connection strings, headers, options, and files of settings. */
function* settingsIn(text: string): Generator<[from: number, to: number]> {
  for (const form of [setting, option]) {
    let end = 0
    for (const match of text.matchAll(form)) {
      if (match.index < end) continue
      const [whole, name = '', sign = '', start = ''] = match
      if (/^(?:null|true|false)\b/i.test(start)) continue
      const before = text[match.index - 1] ?? '\n'
      const isParameter = /[?&#]/.test(before) && /^(?:key|sig|code)$/i.test(name)
      const value = /^\d+$/.test(start) ? Number(start) : start
      if (!isParameter && !isSecretName(name, value)) continue
      // In prose, a short word follows a colon: "the token: it expires".
      if (before !== '\n' && /^\s{0,4}:/.test(sign) && start.length < 4) continue
      const from = match.index + whole.length
      const isLine = before === '\n' && sign.includes(':')
      const rest = isLine || /^[[{]/.test(start) ? /\n|$/g : /[\s"'&;,\\]|$/g
      rest.lastIndex = from
      end = rest.exec(text)?.index ?? text.length
      yield [from, end]
    }
  }
}

/** Yields the ranges of secrets in sentences (`the password is ...`) and of passwords in curl commands (`-u user:password`). */
function* spokenIn(text: string): Generator<[from: number, to: number]> {
  const form = /\bcurl\b/i.test(text) ? spokenOrUser : spoken
  let end = 0
  for (const { 0: whole, index, groups = {} } of text.matchAll(form)) {
    const value = groups.word ?? groups.user ?? ''
    const from = index + whole.length - value.length
    if (from < end) continue
    end = index + whole.length
    yield [from, end]
  }
}

/** The word after `is` must contain a digit or a sign. Ordinary words, as in "the password is required", have none. */
const spoken =
  /\b(?:passw(?:or)?d|passphrase|passcode|pwd|(?:api|access|secret)[-_ ]?key|token)\s{1,4}is\s{0,4}:?\s{1,4}["'`]?(?<word>(?=[^\s"'`,;]{0,63}(?:\d|[@#$%^&*_+=!?~](?=\w)))(?!\d{1,3}\b)[^\s"'`,;]{4,1024})/gi

/** Does not match two numbers: `docker run -u 1000:1000` names a user id and a group id. */
const user =
  /(?<=^|\s)(?:-u|--user|--proxy-user)[\s=]{0,4}["']?(?!\d{1,10}:\d{1,10}(?:\s|$))[^\s:"']{0,256}:(?<user>[^\s"']{1,1024})/g

const spokenOrUser = new RegExp(`${spoken.source}|${user.source}`, 'gi')

/** `name=value`, `name: value`, `"name":"value"`. Only the start of the value is read, so that each character is read a few times at most. */
const setting =
  /(?<=^|[^\w.-]|--)([A-Za-z_][\w.-]{0,80})((?:\\{0,4}["'])?\s{0,4}[=:]\s{0,4}(?:\\{0,4}["'])?)(?=([^\s"'&;,\\]{1,16}))/g

/** `--name value` */
const option = /(?<=^|[\s"'])--([A-Za-z][\w-]{0,80})(\s{1,4}["']?)(?=([^\s"'-][^\s"']{0,15}))/g

/** JSON as text: a client that writes its configuration so means the same. */
function holdsInJson(text: string, holds: (value: unknown) => boolean): boolean {
  const trimmed = text.trim()
  if (!/^[[{"]/.test(trimmed)) return false
  try {
    return holds(JSON.parse(trimmed))
  } catch (error) {
    return !(error instanceof SyntaxError) // too deep or too large to be examined
  }
}
