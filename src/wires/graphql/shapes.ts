/** The inputs of the contract, as GraphQL has checked and coerced them. */
type Maybe<T> = T | null | undefined
export type MessageRole = 'assistant' | 'developer' | 'system' | 'tool' | 'user'

export interface MessageInput {
  id: string
  createdAt: Date
  textMessage?: Maybe<{ content: string; role: MessageRole; parentMessageId?: Maybe<string> }>
  actionExecutionMessage?: Maybe<{
    name: string
    /** JSON text. */
    arguments: string
    parentMessageId?: Maybe<string>
    scope?: Maybe<string>
  }>
  resultMessage?: Maybe<{
    actionExecutionId: string
    actionName: string
    result: string
    parentMessageId?: Maybe<string>
  }>
  agentStateMessage?: Maybe<{
    threadId: string
    agentName: string
    nodeName: string
    runId: string
    role: MessageRole
    state: string
    running: boolean
    active: boolean
  }>
  imageMessage?: Maybe<{
    format: string
    bytes: string
    role: MessageRole
    parentMessageId?: Maybe<string>
  }>
}

export interface ActionInput {
  name: string
  description: string
  /** JSON text of an object schema. */
  jsonSchema: string
  available?: Maybe<'disabled' | 'enabled' | 'remote'>
}

export interface AgentStateInput {
  agentName: string
  /** JSON text. */
  state: string
  config?: Maybe<string>
}

export interface MetaEventInput {
  name: 'LangGraphInterruptEvent' | 'CopilotKitLangGraphInterruptEvent'
  value: string
  response?: Maybe<string>
  messages?: Maybe<MessageInput[]>
}

export interface ForwardedParameters {
  model?: Maybe<string>
  maxTokens?: Maybe<number>
  stop?: Maybe<string[]>
  /** `required`, or `function` with the name beside it. */
  toolChoice?: Maybe<string>
  toolChoiceFunctionName?: Maybe<string>
  temperature?: Maybe<number>
}

export interface GenerateInput {
  metadata: {
    requestType?: Maybe<'Chat' | 'Suggestion' | 'Task' | 'TextareaCompletion' | 'TextareaPopover'>
  }
  messages: MessageInput[]
  frontend: {
    actions: ActionInput[]
    url?: Maybe<string>
    toDeprecate_fullContext?: Maybe<string>
  }
  threadId?: Maybe<string>
  runId?: Maybe<string>
  agentSession?: Maybe<{ agentName: string; threadId?: Maybe<string>; nodeName?: Maybe<string> }>
  agentState?: Maybe<AgentStateInput>
  agentStates?: Maybe<AgentStateInput[]>
  metaEvents?: Maybe<MetaEventInput[]>
  context?: Maybe<{ description: string; value: string }[]>
  forwardedParameters?: Maybe<ForwardedParameters>
  extensions?: Maybe<Extensions>
  cloud?: Maybe<{
    guardrails?: Maybe<{ inputValidationRules: { allowList?: string[]; denyList?: string[] } }>
  }>
}

export interface LoadAgentStateInput {
  threadId: string
  agentName: string
}

export interface LoadedState {
  threadId: string
  threadExists: boolean
  /** Make the JSON texts. */
  state(): Promise<LoadedText>
  messages(): Promise<LoadedText>
}

/** A long text is made in steps. */
export type LoadedText = string | (() => AsyncIterable<string>)

export interface AvailableAgents {
  agents: { id: string; name: string; description: string }[]
}

export interface Extensions {
  openaiAssistantAPI?: { runId?: string | null; threadId?: string | null } | null
}
