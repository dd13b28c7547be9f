import type { Settings, ToolArgs, ToolData } from "./generated.js";

/** The families of tools. */
export type Dialect = "classic" | "dotted" | "scoped" | "all";

/** The model providers whose form a list of tools can have. */
export type SchemaFormat = "openai" | "anthropic" | "gemini" | "mcp";

/** What holds where no rule says otherwise. */
export type PermissionMode = NonNullable<NonNullable<Settings["permissions"]>["mode"]>;

/** What a session is made with: where it works, which tools it has, and settings by their names in the configuration file. */
export interface Options extends Settings {
  /** The directory that the tools may work in, or several. Default: the current directory. */
  root?: string | readonly string[] | undefined;
  /** The tools. Default: `classic`. */
  dialect?: Dialect | readonly Dialect[] | undefined;
  /** Decides what the permissions say a person is to be asked about. Without it, the answer is no. */
  canUseTool?: CanUseTool | undefined;
}

/** What a person is to be asked. */
export interface Question {
  /** The question on one line. */
  question: string;
  /** The tool that the agent calls. */
  tool: string;
  /** What it would do. */
  operation: "Read" | "Write" | "Delete";
  /** The path, as the agent gave it. */
  given: string;
  /** The file or directory that it leads to. */
  path: string;
  /** Why the question comes up. */
  reason: string;
  /** What would change, where that can be shown. */
  diff: string | null;
}

/** An answer to a question. */
export interface Decision {
  behavior: "allow" | "deny";
  /** Words for the agent that go with a no. */
  message?: string | undefined;
  /** After a yes: the same operation on the same file is not asked about again in this session. */
  remember?: boolean | undefined;
}

/** Decides whether a tool may do something. Whatever it throws is a no, and so is anything but a clear yes. */
export type CanUseTool = (
  toolName: string,
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  args: any,
  question: Question,
) => boolean | Decision | Promise<boolean | Decision>;

/** What a permission manager is asked. */
export interface PermissionRequest extends Question {
  toolName: string;
  toolInput: Record<string, unknown>;
  permissionMode: string | undefined;
  canUseToolCallback: CanUseTool | undefined;
}

/** Decides in place of `canUseToolCallback`, which it is given. */
export interface PermissionManager {
  checkPermission(request: PermissionRequest): boolean | Decision | Promise<boolean | Decision>;
}

/** What holds for one call. */
export interface ToolContext {
  /** A directory in the workspace: relative paths, and searches without a path, start there. Default: the first root. */
  workdir?: string | undefined;
  /** The mode for this call, in place of the session's. */
  permissionMode?: string | undefined;
  /** Decides for this call, in place of the session's `canUseTool`. */
  canUseToolCallback?: CanUseTool | undefined;
  /** Decides for this call, before anybody else, if it is a `PermissionManager`. */
  permissionManager?: object | undefined;
  /** Ends the call: its result then has the code `cancelled`. */
  abortSignal?: AbortSignal | undefined;
  /** The same, by the name that `fetch` has for it. */
  signal?: AbortSignal | undefined;
  /** Whether changes are only described, in place of the session's setting. */
  dryRun?: boolean | undefined;
}

/** A picture in a result. */
export interface ToolImage {
  /** The picture's bytes in base64. */
  data: string;
  mediaType: string;
}

/** What comes of a call. */
export interface ToolResult<Data = unknown> {
  /** Whether the call did what it was asked for. */
  success: boolean;
  /** What the model reads; empty on failure. */
  content: string;
  /** One line for a person. */
  shortResult?: string;
  /** What went wrong, and what to try next: for the model. */
  error?: string;
  images?: ToolImage[];
  /** The file that it was about. */
  filePath?: string;
  /** Facts for programs; `code` says what kind of failure it is. */
  metadata?: Record<string, unknown>;
  /** The answer of a tool that answers with an object (`dotted`, `scoped`); `content` is its JSON. */
  data?: Data;
}

/** What a tool's result has in `data`. */
export type DataOf<Name> = Name extends keyof ToolData
  ? ToolData[Name] | { error: string; message: string }
  : unknown;

/** What a tool takes. */
export type ArgsOf<Name> = Name extends keyof ToolArgs ? ToolArgs[Name] : unknown;

/** A tool. */
export interface ToolPlugin {
  name: string;
  /** What a model is told about it, in the form of OpenAI's functions. */
  config: {
    type: "function";
    function: { name: string; description: string; parameters: Record<string, unknown> };
  };
  /** Makes a call. Failures are results, not rejections. */
  execute: (args: Record<string, unknown>, context?: ToolContext) => Promise<ToolResult>;
  /** The arguments on one line, for a person. */
  formatCompactParams: (params: Record<string, unknown>, context?: ToolContext) => string;
}
