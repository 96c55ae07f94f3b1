import { expect, test } from 'vitest'
import { classify, type ErrorCode, errors } from './errors.ts'

const page = () =>
  [
    '# Errors',
    '',
    'One table, `src/core/errors.ts`; every wire turns its rows into its own format. On the chats wire an error is',
    '`{"error": {"code", "message", "field"?, "retryable", ...}}` with the status below. This page is kept equal',
    'to the table by a test (`npm test -- src/core/errors.test.ts -u` writes it anew). `type` and `severity` are how',
    'dashboards tell them apart; what is tried again by itself is a warning.',
    '',
    '## Refused, or not known',
    '',
    '- `store_unavailable`, `overloaded` and `stopping` (503, with `Retry-After`): the request was refused. Nothing was',
    '  written and nothing will be. Send it again.',
    '- `outcome_unknown` (504, without `Retry-After`): storage did not confirm the write within 5 s. The write may still',
    '  take effect. Do not send the request again blindly.',
    '',
    'The body of `outcome_unknown` names what the request was about: `thread_id` and `run_id` (`chat_id` and',
    '`interaction_id` on the chats wire, `extensions.handrail` in GraphQL). How to find out:',
    '',
    '1. A request that can be recognised is always safe to send again, to any server: with the same `Idempotency-Key`',
    '   (see below), the same message ids (AG-UI, GraphQL), or the same decision on the same approval.',
    '   A request that creates a chat, a session or a GraphQL thread without naming it needs the key.',
    '   It finds the first write, also while that is still under way, and starts no second run.',
    '2. For any other start, read the run: `GET /chats/{thread_id}/interactions/{run_id}`. 200: it was started. 504 again:',
    '   the write is still under way; ask again. 404: it was not started, and you may send the request again. On another',
    '   server, 404 counts only 10 s after the 504: until then the first server may still be writing.',
    '3. For a cancel, a budget, a title or a grant, read the thing that you changed.',
    '',
    '## Idempotency keys',
    '',
    'Send the header `Idempotency-Key` (1 to 200 characters) with a request that creates, starts, decides or sets something. The',
    'server records the key, with a digest of the request, in the transition that the request causes.',
    '',
    '- The same request with the same key gets the result of the first one. The server starts nothing a second time.',
    '- Another request with the same key gets `idempotency_mismatch` (422; in GraphQL an entry of `errors`). The server changes nothing.',
    '- A request that the server refused does not use up its key.',
    '',
    'A key belongs to one chat of one caller: the same key in another chat is another key. If a request creates a chat and does not',
    'name it, the key identifies the chat. The server compares:',
    '',
    '| request | compared |',
    '| --- | --- |',
    '| chats, approvals, workflow, governor | the ids in the address, and the body |',
    '| AG-UI `run`, GraphQL `generateCopilotResponse` | the agent, and the content of the last user messages in the list; with AG-UI also `branchFrom` |',
    '',
    'On AG-UI and GraphQL, ids, timestamps, earlier messages and messages after the user messages may differ. A client that makes a',
    'new message id for each attempt therefore joins the first run. The key covers the user messages only: an answer to a question is',
    'identified by the question, and needs no key.',
    '',
    '## Errors of agents',
    '',
    'An agent that has something to say to the user throws `AgentError`, for example',
    "`new AgentError('Name an account, like ACC-001.')`. The run fails with `agent_failed`, every wire and the page show",
    'its message, and the run is not retried. The messages of a `RuntimeError` are for users too. Of any other error that an',
    'agent throws, users get the sentence below; the error and all causes are only in the log.',
    '',
    '## All codes',
    '',
    '| code | status | try again | category | type | severity | sentence |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...Object.entries(errors).map(([code, { status, category }]) => {
      const { type, retryable, severity, sentence } = classify(code as ErrorCode)
      const again = retryable ? 'yes' : 'no'
      return `| \`${code}\` | ${status} | ${again} | ${category} | ${type} | ${severity} | ${sentence} |`
    }),
    '',
  ].join('\n')

test('docs/errors.md says what the table says', async () => {
  await expect(page()).toMatchFileSnapshot('../../docs/errors.md')
})
