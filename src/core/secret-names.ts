/**
 * Whether a field with this name and value is a secret by its name, in any spelling (`apiKey`, `API_KEY`, `x-api-key`, `apikey`). A miss
 * writes a secret to the journal; a false hit only keeps a value out of it, which the run then lacks after a restart. So doubtful
 * names count as secrets. `null` and booleans are no secrets.
 */
export function isSecretName(name: string, value: unknown): boolean {
  if (value === null || value === undefined || typeof value === 'boolean') return false
  if (!maybeSecretName.test(name)) return false
  if (name.length > maxName) return true
  const words = wordsIn(name)
  return namesSecret(words) || namesToken(words, value) || namesShortCode(words, value)
}

/** Most names are ruled out by one look: a request may have thousands of them. */
export const maybeSecretName =
  /secret|pass|pwd?|psk|pat|cred|auth|bearer|cookie|jwt|assert|oidc|saml|sig|hmac|otp|mfa|dsn|pem|conn|key|token|sid|sess|csrf|xsrf|mnemonic|phrase|code|kubeconfig|netrc|sas|pin|cv[vc]/i

/** Names that are longer are not split into words. */
const maxName = 200

/** `x-Goog-IAPJwt_assertion2` → x goog iap jwt assertion */
const wordsIn = (name: string): string[] =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter(Boolean)

/** Words that make the whole name a secret, wherever they stand in it. */
const secretWord =
  /^(secrets?|passwo?r?ds?|pswd|passwort|passphrases?|passcodes?|passkeys?|pwd|pw|psk|credentials?|creds?|authori[sz]ation|bearer|cookies?|jwts?|assertions?|oidc|oauth|saml|signatures?|hmac|otp|totp|mfa|dsn|pem|connstr|csrf|xsrf|mnemonics?|kubeconfig|keytab|netrc|sas|sig|keypairs?)$/

/** The same in names that are written as one word: `openaiapikey`, `x-authtoken`, `userpassword`, `clientsecret`. */
const joinedSecret =
  /secret(?!ar|ion)|passwo?r?d|passphrase|credential|(api|access|private|secret|signing|encryption|master|auth|service|account|shared|client|app|ssh|license|deploy|storage)keys?(?!board|word)|(access|refresh|id|auth|api|session|user|bearer|csrf|xsrf|bot|security)token|authori[sz]ation|keymaterial$|connectionstring|^(sessionid|sid)$/

/** Words before `key` that say that it is none that opens anything. */
const openKey =
  /^(primary|foreign|sort|cache|partition|idempotency|public|group|row|column|hot|shortcut|map|index|translation|message|object|lookup|unique|react|query|field|record|node|state|thread|config|item|event|sub|hash|range|natural|surrogate|composite|dedupe|routing|storage|label|tag|type|any|answer)$/

/** Words before `keys`: of others, a list of keys may be a list of fields. */
const secretKeys =
  /^(api|access|private|secret|signing|encryption|master|auth|ssh|provider|providers|model|service|client|vendor|account|user|license|deploy|llm|openai|anthropic|google|gemini|azure|aws|gcp|stripe|github|mistral|groq|cohere|slack)$/

/** Words after `auth` that describe how to sign in, and hold nothing that signs in. */
const aboutAuth =
  /^(types?|methods?|modes?|providers?|urls?|uris?|domains?|schemes?|status|scopes?|levels?|endpoints?|hosts?|required|enabled|expiry|expires)$/

const codeWords = /^(recovery|backup|verification|security|access|device|login|unlock)$/

function namesSecret(words: readonly string[]): boolean {
  const last = words.at(-1) ?? ''
  const before = words.at(-2)
  if (words.some((word) => secretWord.test(word))) return true
  if (words.some((word) => /^auth[nz]?$/.test(word)) && !aboutAuth.test(last)) return true
  if (/^pass(es)?$/.test(last)) return true
  if (last === 'pat' && before !== undefined) return true
  if (last === 'key' && before !== undefined && !openKey.test(before)) return true
  if (last === 'keys' && before !== undefined && secretKeys.test(before)) return true
  if (/^codes?$/.test(last) && codeWords.test(before ?? '')) return true
  if (/^phrases?$/.test(last) && /^(seed|recovery)$/.test(before ?? '')) return true
  if (words.includes('session') && /^(ids?|keys?|data)$/.test(last)) return true
  const isKey = last === 'key' || last === 'keys'
  // `privateKeyPem`, `accessKeyId`, `apiKeyValue`
  return joinedSecret.test(isKey ? words.slice(0, -1).join('') : words.join(''))
}

/** Words that make a name with `tokens` a number of them, or something about one. */
const aboutToken =
  /^(max|min|total|num|n|count|counts|limit|limits|budget|usage|used|size|length|types?|input|output|prompt|completion|reasoning|cached|per|price|cost|ttl|expiry|expires|expiration|window)$/
const joinedCount =
  /^(max|min|total|num|used|input|output|prompt|completion|reasoning|cached)[a-z]*tokens$|^tokens?(count|limit|budget|usage|s?used|type|size|length)s?$/

/** `maxTokens`, `tokenCount` and `tokens: 12` are numbers of tokens; `accessToken` is a token, also if it is a number. */
function namesToken(words: readonly string[], value: unknown): boolean {
  const name = words.join('')
  if (!/tokens?$|^tokens?|token/.test(name) || joinedCount.test(name)) return false
  const at = words.findIndex((word) => /tokens?$/.test(word))
  if (at < 0) return /^tokens?$/.test(name) // `ToKeN`
  const isCount = words[at]!.endsWith('tokens')
  if (isCount && typeof value === 'number') return false
  const about = isCount ? words : [...words.slice(at + 1), ...words.filter((one) => one === 'per')]
  return !about.some((word) => aboutToken.test(word))
}

/** `pin` may also say where something is pinned. */
const namesShortCode = (words: readonly string[], value: unknown): boolean =>
  words.some((word) => /^(pin|cvv|cvc)$/.test(word)) && /^\d{3,12}$/.test(String(value))
