/** What a configuration file, or a program that embeds Handrail, may use. */
export { memoryAnalyst } from './agents/account-analysis/memory-analyst.ts'
export { recommendationAuthor } from './agents/account-analysis/recommendation-author.ts'
export { type AccountAnalysisOptions, accountAnalysis } from './agents/account-analysis/steps.ts'
export { zohoScout } from './agents/account-analysis/zoho-scout.ts'
export { langgraph } from './agents/langgraph/agent.ts'
export { emitMessage, emitState, emitToolCall } from './agents/langgraph/emit.ts'
export { type GovernedOptions, governed } from './agents/langgraph/governed.ts'
export type { GraphSource, LangGraphOptions } from './agents/langgraph/options.ts'
export { governedTools, offeredTools, toolNode } from './agents/langgraph/tools.ts'
export { type AguiAgentOptions, aguiAgent } from './agents/remote/agui/agent.ts'
export {
  type CopilotKitEndpointOptions,
  copilotKitEndpoint,
} from './agents/remote/copilotkit/endpoint.ts'
export {
  type LangGraphPlatformOptions,
  langGraphPlatform,
} from './agents/remote/langgraph-platform/agents.ts'
export type { RemoteSettings } from './agents/remote/settings.ts'
export { type ToolLoopOptions, toolLoop } from './agents/tool-loop/agent.ts'
export { workflow } from './agents/workflow/agent.ts'
export type { Approval, Group, Stage, Step, WorkflowOptions } from './agents/workflow/options.ts'
export { type WrappedOptions, wrapped } from './agents/wrapper/agent.ts'
export type { EventAgent, WrappedContext, WrappedEvent } from './agents/wrapper/events.ts'
export { localBus } from './bus/local/bus.ts'
export { compose } from './compose.ts'
export { type Config, readConfig } from './config.ts'
export type {
  Agent,
  AgentContext,
  AgentEvent,
  Piece,
  Question,
} from './core/agent.ts'
export type { AgentEntry, AgentGovernor, StartingBudget } from './core/agent-setups.ts'
export type { Answer, Ask, Known, RunOptions } from './core/entries.ts'
export { AgentError, type ErrorCode, errors, RuntimeError } from './core/errors.ts'
export type { CallPart, Message, Part } from './core/messages.ts'
export type { Model, ModelEvent, ModelRequest, ToolSpec } from './core/model.ts'
export { defaultPolicy, type PolicyRule } from './core/policy.ts'
export type { Arguments, Condition } from './core/predicates.ts'
export type { RemoteCall, RemoteLine, RemoteUse } from './core/remote.ts'
export {
  type Caller,
  createRuntime,
  type Runtime,
  type RuntimeOptions,
} from './core/runtime.ts'
export type { Bus, Cache, Queue, Slots, Store } from './core/store.ts'
export {
  defineTool,
  EffectDidNotHappen,
  type JsonInput,
  OutcomeUnknown,
  PreconditionChanged,
  type Preview,
  type Risk,
  type Tool,
  type ToolContext,
  type ToolUse,
} from './core/tool.ts'
export type { Guardrails } from './guardrails/guardrails.ts'
export type { GuardRule } from './guardrails/rules.ts'
export { anthropic } from './models/anthropic.ts'
export type { ModelChoice } from './models/choose.ts'
export {
  copilotkitAdapter,
  type ServiceAdapter,
  type ServiceAdapterOptions,
} from './models/copilotkit-adapter.ts'
export { demoModel } from './models/demo.ts'
export { emptyModel } from './models/empty.ts'
export { google } from './models/google.ts'
export {
  type Chain,
  type ChainInput,
  type LangChainOptions,
  langchain,
} from './models/langchain.ts'
export type { ModelMaker, ProviderOptions } from './models/maker.ts'
export { type OpenAiOptions, openai } from './models/openai.ts'
export { openaiCompatible } from './models/openai-compatible.ts'
export { localQueue } from './queue/local/queue.ts'
export { localSlots } from './queue/local/slots.ts'
export { defineConfig, type Settings } from './settings.ts'
export { fileStore } from './stores/file/store.ts'
export { memoryStore } from './stores/memory/store.ts'
export type { Action, ActionParameter } from './tools/actions.ts'
export { type ToolDefinition, tool } from './tools/define.ts'
export { builtInTools } from './tools/index.ts'
export type { McpServer } from './tools/mcp/servers.ts'
export { type ZohoAccess, zohoCrm } from './tools/zoho/client.ts'
export type { Account, Crm } from './tools/zoho/crm.ts'
export { sampleCrm } from './tools/zoho/sample.ts'
