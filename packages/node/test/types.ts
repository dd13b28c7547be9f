// Compiled, not run. First the interface of plugins, as agents define it.
import { Session, createTools, toolSchemas } from "pinfold";
import type { Options, ToolContext, ToolPlugin, ToolResult } from "pinfold";

interface TheirResult {
  success: boolean;
  content: string;
  shortResult?: string;
  error?: string;
  images?: Array<{ data: string; mediaType: string }>;
  filePath?: string;
}

interface TheirContext {
  workdir: string;
  permissionManager?: { theirs(mode: "default" | "plan"): boolean };
  permissionMode?: string;
  canUseToolCallback?: (toolName: string, args: any) => Promise<boolean>;
  theirs?: number;
}

interface TheirPlugin {
  name: string;
  config: { type: "function"; function: { name: string; description: string; parameters: object } };
  execute: (args: Record<string, unknown>, context: TheirContext) => Promise<TheirResult>;
  formatCompactParams?: (params: Record<string, unknown>, context: TheirContext) => string;
}

export const theirs: TheirPlugin[] = createTools({ root: "/ws" });

const options: Options = {
  root: ["/a", "/b"],
  dialect: ["classic", "dotted"],
  durability: "none",
  readBeforeWrite: "off",
  permissions: { mode: "acceptEdits", deny: ["Read(secrets/**)"] },
  canUseTool: (tool, args, question) => question.operation === "Read" && tool !== "" && args != null,
};

// @ts-expect-error: there is no such option
export const misspelled: Options = { dry_run: true };
// @ts-expect-error: there is no such mode
export const careful: Options = { permissions: { mode: "careful" } };

export async function typed(session = new Session(options)): Promise<number> {
  const read: ToolResult = await session.call("Read", { file_path: "/a/b", limit: 3 });
  // @ts-expect-error: there is no such argument
  await session.call("Read", { file_path: "/a/b", limits: 3 });
  // @ts-expect-error: it must be a string
  await session.call("Read", { file_path: 42 });
  const name: string = "Read";
  await session.call(name, { whatever: "a model says" });
  const result = await session.call("file.read", { path: "b" });
  if (result.data && "total_lines" in result.data) {
    return result.data.total_lines;
  }
  const context: ToolContext = { workdir: "/a", abortSignal: AbortSignal.timeout(5) };
  const plugin: ToolPlugin | undefined = session.tools[0];
  await plugin?.execute({}, context);
  return toolSchemas("openai", { dialect: "all" }).length + read.content.length;
}
