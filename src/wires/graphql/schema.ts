/** What can be asked, field by field as CopilotKit 1.10 knows it: clients send documents written for it. */
export const typeDefs = /* GraphQL */ `
"""
Leave the fragment out of the first answer; it follows in a later part.
"""
directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT

"""
Answer with the first items of the list; the others follow in later parts, as they come.
"""
directive @stream(if: Boolean! = true, label: String, initialCount: Int = 0) on FIELD

"""
A moment in time, such as 2026-02-03T04:05:06.789Z.
"""
scalar DateTimeISO

"""
Any JSON value.
"""
scalar JSON

"""
A JSON object.
"""
scalar JSONObject

type Query {
  """
  Says hello: a way to see that the server is there.
  """
  hello: String!

  """
  The agents that this server runs.
  """
  availableAgents: AgentsResponse!

  """
  What is known of an agent on a thread. A thread that does not exist is no error.
  """
  loadAgentState(data: LoadAgentStateInput!): LoadAgentStateResponse!
}

type Mutation {
  """
  Runs an agent and answers with what it says and does. Ask for messages, content and arguments
  with @stream, and for status with @defer, to see it as it happens.
  """
  generateCopilotResponse(
    data: GenerateCopilotResponseInput!

    """
    Handed to the agent as it is.
    """
    properties: JSONObject
  ): CopilotResponse!
}

# Agents

type AgentsResponse {
  agents: [Agent!]!
}

type Agent {
  id: String!
  name: String!
  description: String!
}

input LoadAgentStateInput {
  threadId: String!
  agentName: String!
}

type LoadAgentStateResponse {
  threadId: String!
  threadExists: Boolean!

  """
  JSON text of an object, without the messages.
  """
  state: String!

  """
  JSON text of a list.
  """
  messages: String!
}

# What is asked of generateCopilotResponse

input GenerateCopilotResponseInput {
  metadata: GenerateCopilotResponseMetadataInput!

  """
  The thread to write to; without one a new thread is made.
  """
  threadId: String
  runId: String

  """
  The whole history, oldest first.
  """
  messages: [MessageInput!]!
  frontend: FrontendInput!

  """
  The agent to run; without one it is the default agent.
  """
  agentSession: AgentSessionInput

  """
  Not used: see agentStates.
  """
  agentState: AgentStateInput
  agentStates: [AgentStateInput!]

  """
  Answers to what an earlier response was interrupted for.
  """
  metaEvents: [MetaEventInput!]
  context: [CopilotContextInput!]
  forwardedParameters: ForwardedParametersInput
  extensions: ExtensionsInput

  """
  Accepted, and not used.
  """
  cloud: CloudInput
}

input GenerateCopilotResponseMetadataInput {
  requestType: CopilotRequestType
}

"""
What a request is for.
"""
enum CopilotRequestType {
  Chat
  Suggestion
  Task
  TextareaCompletion
  TextareaPopover
}

"""
Set one of the five kinds of messages.
"""
input MessageInput {
  id: String!
  createdAt: DateTimeISO!
  textMessage: TextMessageInput
  actionExecutionMessage: ActionExecutionMessageInput
  resultMessage: ResultMessageInput
  agentStateMessage: AgentStateMessageInput
  imageMessage: ImageMessageInput
}

input TextMessageInput {
  content: String!
  role: MessageRole!
  parentMessageId: String
}

input ActionExecutionMessageInput {
  name: String!

  """
  JSON text.
  """
  arguments: String!
  parentMessageId: String
  scope: String @deprecated(reason: "Not used.")
}

input ResultMessageInput {
  actionExecutionId: String!
  actionName: String!
  result: String!
  parentMessageId: String
}

input AgentStateMessageInput {
  threadId: String!
  agentName: String!
  nodeName: String!
  runId: String!
  role: MessageRole!

  """
  JSON text.
  """
  state: String!
  running: Boolean!
  active: Boolean!
}

input ImageMessageInput {
  """
  png, jpeg and the like.
  """
  format: String!

  """
  In base64.
  """
  bytes: String!
  role: MessageRole!
  parentMessageId: String
}

"""
Who speaks.
"""
enum MessageRole {
  assistant
  developer
  system
  tool
  user
}

"""
What the page can do, and where it is.
"""
input FrontendInput {
  actions: [ActionInput!]!
  url: String
  toDeprecate_fullContext: String
}

input ActionInput {
  name: String!
  description: String!

  """
  JSON text of the schema of the arguments.
  """
  jsonSchema: String!
  available: ActionInputAvailability
}

"""
Who may call an action of the page: nobody, everybody, or agents alone.
"""
enum ActionInputAvailability {
  disabled
  enabled
  remote
}

input AgentSessionInput {
  agentName: String!
  threadId: String
  nodeName: String
}

input AgentStateInput {
  agentName: String!

  """
  JSON text.
  """
  state: String!

  """
  JSON text.
  """
  config: String
}

input MetaEventInput {
  name: MetaEventName!
  value: String!

  """
  The answer: what the run goes on with.
  """
  response: String
  messages: [MessageInput!]
}

input CopilotContextInput {
  description: String!
  value: String!
}

"""
Hints for the model.
"""
input ForwardedParametersInput {
  model: String
  maxTokens: Float
  stop: [String!]

  """
  required, or function together with toolChoiceFunctionName.
  """
  toolChoice: String
  toolChoiceFunctionName: String
  temperature: Float
}

input ExtensionsInput {
  openaiAssistantAPI: OpenAIApiAssistantAPIInput
}

input OpenAIApiAssistantAPIInput {
  runId: String
  threadId: String
}

input CloudInput {
  guardrails: GuardrailsInput
}

input GuardrailsInput {
  inputValidationRules: GuardrailsRuleInput!
}

input GuardrailsRuleInput {
  allowList: [String!] = []
  denyList: [String!] = []
}

# What generateCopilotResponse answers

type CopilotResponse {
  threadId: String!
  runId: String
  extensions: ExtensionsResponse

  """
  How it ended. Without @defer the answer waits for the end.
  """
  status: ResponseStatus!
  messages: [BaseMessageOutput!]!

  """
  What the run was interrupted for.
  """
  metaEvents: [BaseMetaEvent!]
}

type ExtensionsResponse {
  openaiAssistantAPI: OpenAIApiAssistantAPIResponse
}

type OpenAIApiAssistantAPIResponse {
  runId: String
  threadId: String
}

union ResponseStatus = PendingResponseStatus | SuccessResponseStatus | FailedResponseStatus

interface BaseResponseStatus {
  code: ResponseStatusCode!
}

enum ResponseStatusCode {
  Failed
  Pending
  Success
}

type PendingResponseStatus implements BaseResponseStatus {
  code: ResponseStatusCode!
}

type SuccessResponseStatus implements BaseResponseStatus {
  code: ResponseStatusCode!
}

type FailedResponseStatus implements BaseResponseStatus {
  code: ResponseStatusCode!
  reason: FailedResponseStatusReason!

  """
  An object; its description is a sentence for people.
  """
  details: JSON
}

enum FailedResponseStatusReason {
  GUARDRAILS_VALIDATION_FAILED
  MESSAGE_STREAM_INTERRUPTED
  UNKNOWN_ERROR
}

interface BaseMessageOutput {
  id: String!
  createdAt: DateTimeISO!
  status: MessageStatus!
}

type TextMessageOutput implements BaseMessageOutput {
  id: String!
  createdAt: DateTimeISO!
  status: MessageStatus!

  """
  Pieces that together are the text.
  """
  content: [String!]!
  role: MessageRole!
  parentMessageId: String
}

"""
A call of an action: of the page, or of a tool of the server.
"""
type ActionExecutionMessageOutput implements BaseMessageOutput {
  id: String!
  createdAt: DateTimeISO!
  status: MessageStatus!
  name: String!

  """
  Pieces that together are JSON text.
  """
  arguments: [String!]!
  parentMessageId: String
  scope: String @deprecated(reason: "Always null.")
}

"""
What came of a call that the server made.
"""
type ResultMessageOutput implements BaseMessageOutput {
  id: String!
  createdAt: DateTimeISO!
  status: MessageStatus!
  actionExecutionId: String!
  actionName: String!
  result: String!
}

"""
The whole state of an agent at one moment; a later one replaces it.
"""
type AgentStateMessageOutput implements BaseMessageOutput {
  id: String!
  createdAt: DateTimeISO!
  status: MessageStatus!
  threadId: String!
  agentName: String!
  nodeName: String!
  runId: String!
  active: Boolean!
  running: Boolean!
  role: MessageRole!

  """
  JSON text of an object.
  """
  state: String!
}

type ImageMessageOutput implements BaseMessageOutput {
  id: String!
  createdAt: DateTimeISO!
  status: MessageStatus!
  format: String!

  """
  In base64.
  """
  bytes: String!
  role: MessageRole!
  parentMessageId: String
}

union MessageStatus = PendingMessageStatus | SuccessMessageStatus | FailedMessageStatus

enum MessageStatusCode {
  Failed
  Pending
  Success
}

type PendingMessageStatus {
  code: MessageStatusCode!
}

type SuccessMessageStatus {
  code: MessageStatusCode!
}

type FailedMessageStatus {
  code: MessageStatusCode!
  reason: String!
}

interface BaseMetaEvent {
  """
  Always MetaEvent.
  """
  type: String!
  name: MetaEventName!
}

"""
What a run can be interrupted by.
"""
enum MetaEventName {
  LangGraphInterruptEvent
  CopilotKitLangGraphInterruptEvent
}

type LangGraphInterruptEvent implements BaseMetaEvent {
  type: String!
  name: MetaEventName!

  """
  JSON text, or plain text.
  """
  value: String!
  response: String
}

type CopilotKitLangGraphInterruptEvent implements BaseMetaEvent {
  type: String!
  name: MetaEventName!
  data: CopilotKitLangGraphInterruptEventData!
  response: String
}

type CopilotKitLangGraphInterruptEventData {
  value: String!
  messages: [BaseMessageOutput!]!
}
`
