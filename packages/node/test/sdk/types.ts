// Compiled, not run: what Pinfold takes and gives fits the types of other packages.
import type Anthropic from "@anthropic-ai/sdk";
import type { BetaRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool";
import type { Responses } from "openai/resources/responses";
import type { Plugin } from "@opencode-ai/plugin";
import { Session } from "pinfold";
import { Pinfold } from "pinfold/opencode";

export const runnable: BetaRunnableTool[] = new Session({ dialect: "toolset" }).runnableTools({ workdir: "src" });

export async function used(session: Session, block: Anthropic.ToolUseBlock): Promise<Anthropic.ToolResultBlockParam> {
  return session.toolResult(block);
}

export async function patched(session: Session, call: Responses.ResponseApplyPatchToolCall) {
  const output: Responses.ResponseInputItem.ApplyPatchCallOutput = {
    type: "apply_patch_call_output",
    call_id: call.call_id,
    ...(await session.patchResult(call)),
  };
  // @ts-expect-error: there is no such operation
  await session.patchResult({ type: "rename_file", path: "a" });
  return [output, await session.patchResult(call.operation)];
}

export const plugin: Plugin = Pinfold;
export const strict: Plugin = (project) => Pinfold(project, { permissions: { deny: ["Read(secrets/**)"] } });
