/** What the operator set cannot be: told in one sentence at the start, without a stack. */
export class ConfigError extends Error {}
