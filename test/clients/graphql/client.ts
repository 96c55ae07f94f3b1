import { createRequire } from 'node:module'

/**
 * The client by its CommonJS build, as a bundler would have it: by the other, Node takes a module
 * for the function that repairs half-written arguments, and all arguments are read as `{}`.
 */
type Client = typeof import('@copilotkit/runtime-client-gql')
const client = createRequire(import.meta.url)('@copilotkit/runtime-client-gql') as Client

export const {
  CopilotRuntimeClient,
  convertGqlOutputToMessages,
  convertMessagesToGqlInput,
  filterAdjacentAgentStateMessages,
  filterAgentStateMessages,
  GenerateCopilotResponseDocument,
  ImageMessage,
  loadMessagesFromJsonRepresentation,
  ResultMessage,
  Role,
  TextMessage,
} = client

export type { ActionExecutionMessage, Message } from '@copilotkit/runtime-client-gql'
