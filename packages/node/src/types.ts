import type { Dialect, Settings, ToolArgs, ToolData } from "./generated.js";

/** The formats of tool lists. */
export type SchemaFormat = "openai" | "anthropic" | "gemini" | "mcp";

/** Permission mode for operations that no rule matches. */
export type PermissionMode = NonNullable<NonNullable<Settings["permissions"]>["mode"]>;

/** The options of a session: roots, dialects, approval callback, and the settings of the configuration file in camelCase. */
export interface Options extends Settings {
  /** The root directory, or several. Default: the current directory. */
  root?: string | readonly string[] | undefined;
  /** The dialect, or several. Default: `classic`. */
  dialect?: Dialect | readonly Dialect[] | undefined;
  /** Answers approval requests. Without it they are denied. */
  canUseTool?: CanUseTool | undefined;
}

/** An approval request. */
export interface Question {
  /** The question on one line. */
  question: string;
  /** The tool that the agent calls. */
  tool: string;
  /** The operation. */
  operation: "Read" | "Write" | "Delete";
  /** The path, as the agent gave it. */
  given: string;
  /** The real path of the file or directory. */
  path: string;
  /** Why the user is asked. */
  reason: string;
  /** The diff of the change, if it can be shown. */
  diff: string | null;
}

/** The answer to an approval request. */
export interface Decision {
  behavior: "allow" | "deny";
  /** The reason for a denial, for the agent. */
  message?: string | undefined;
  /** Whether the approval holds for the same operation on the same file for the whole session. */
  remember?: boolean | undefined;
}

/** Answers approval requests. An exception, and anything but a clear yes, denies. */
export type CanUseTool = (
  toolName: string,
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  args: any,
  question: Question,
) => boolean | Decision | Promise<boolean | Decision>;

/** The approval request that a permission manager gets. */
export interface PermissionRequest extends Question {
  toolName: string;
  toolInput: Record<string, unknown>;
  permissionMode: string | undefined;
  canUseToolCallback: CanUseTool | undefined;
}

/** Answers approval requests instead of `canUseToolCallback`, which it gets with the request. */
export interface PermissionManager {
  checkPermission(request: PermissionRequest): boolean | Decision | Promise<boolean | Decision>;
}

/** The context of a call. */
export interface ToolContext {
  /** A directory in the workspace: relative paths, and searches without a path, start there. Default: the first root. */
  workdir?: string | undefined;
  /** The permission mode of this call. Default: the session's. */
  permissionMode?: string | undefined;
  /** Answers the approval requests of this call. Default: the session's `canUseTool`. */
  canUseToolCallback?: CanUseTool | undefined;
  /** Answers the approval requests of this call first, if it is a `PermissionManager`. */
  permissionManager?: object | undefined;
  /** Cancels the call: its result has the code `cancelled`. */
  abortSignal?: AbortSignal | undefined;
  /** The same as `abortSignal`. */
  signal?: AbortSignal | undefined;
  /** Whether changes are described instead of made. Default: the session's setting. */
  dryRun?: boolean | undefined;
}

/** An image in a result. */
export interface ToolImage {
  /** Base64. */
  data: string;
  mediaType: string;
}

/** The result of a call. */
export interface ToolResult<Data = unknown> {
  /** Whether the call succeeded. */
  success: boolean;
  /** The text for the model; empty on failure. */
  content: string;
  /** One line for the user. */
  shortResult?: string;
  /** The error message for the model, with a hint. */
  error?: string;
  images?: ToolImage[];
  /** The path of the file. */
  filePath?: string;
  /** Data for programs; `code` is the kind of failure. */
  metadata?: Record<string, unknown>;
  /**
   * The result of a tool that returns an object (`dotted`, `scoped`); `content` is its JSON. Of dialects that answer
   * with content blocks (`editor`, `patch`, `toolset`, `opencode`) the result as the Model Context Protocol has it; `content` is its text.
   */
  data?: Data;
}

/** The options of a rewind, beside the context of a call. */
export interface RewindOptions extends ToolContext {
  /** Whether the changes of other sessions are undone, too. */
  everybody?: boolean | undefined;
  /** Whether files that somebody else has changed are left as they are, instead of changing nothing. */
  leaveOutConflicts?: boolean | undefined;
}

/** A path to which a rewind undoes changes. */
export interface RewoundFile {
  /** Its path as it is before the rewind. */
  path: string;
  what: "restored" | "removed" | "created again" | "moved back";
  /** The path that it is moved back to. */
  backTo?: string;
  /** Lines that are added and removed, where both versions are text. */
  linesAdded?: number;
  linesRemoved?: number;
}

/** The outcome of a rewind, or of its dry run. */
export interface Rewound {
  /** Whether it was made. Not in a dry run, nor if there are conflicts that were not to be left out. */
  done: boolean;
  dryRun: boolean;
  /** The id of the rewind itself, which \`pinfold undo\` undoes. */
  id?: string;
  /** How many changes are undone. */
  changes: number;
  files: RewoundFile[];
  /** Files that somebody else has changed since, and why they stay. */
  conflicts: Array<{ path: string; why: string }>;
}

/** A call, as a message of Anthropic's models has it. */
export interface ToolUseBlock {
  id: string;
  name: string;
  input: unknown;
}

/** The result of a call, for the next message to the model. */
export interface ToolResultBlock {
  type: "tool_result";
  tool_use_id: string;
  content: ContentBlock[];
  is_error: boolean;
}

/** The kinds of images that results have. */
export type ImageType = "image/gif" | "image/jpeg" | "image/png" | "image/webp";

/** A part of a result, as Anthropic's messages have it. */
export type ContentBlock =
  | { type: "text"; text: string }
  | { type: "image"; source: { type: "base64"; media_type: ImageType; data: string } };

/** A tool, as a request to Anthropic's models declares it. */
export type AnthropicTool =
  | { name: string; description: string; input_schema: { type: "object"; [key: string]: unknown } }
  | { type: "text_editor_20250728"; name: "str_replace_based_edit_tool"; max_characters: number }
  | { type: "text_editor_20250124"; name: "str_replace_editor" }
  | { type: "memory_20250818"; name: "memory" };

/** A tool that the tool runners of Anthropic's SDK call. */
export type RunnableTool = AnthropicTool & {
  parse: (input: unknown) => unknown;
  run: (input: unknown, context?: { signal?: AbortSignal | null | undefined }) => Promise<ContentBlock[]>;
};

/** An operation of OpenAI's hosted `apply_patch` tool. */
export interface PatchOperation {
  type: "create_file" | "update_file" | "delete_file";
  path: string;
  /** The lines of the patch below the file's header; none for `delete_file`. */
  diff?: string | undefined;
}

/** A call of OpenAI's hosted `apply_patch` tool, as a response has it. */
export interface PatchCall {
  operation: PatchOperation;
}

/** The fields of the item `apply_patch_call_output`, besides `type` and `call_id`. */
export interface PatchResult {
  status: "completed" | "failed";
  output: string;
}

/** The type of `data` in a tool's result. */
export type DataOf<Name> = Name extends keyof ToolData
  ? ToolData[Name] | { error: string; message: string }
  : unknown;

/** The type of a tool's arguments. */
export type ArgsOf<Name> = Name extends keyof ToolArgs ? ToolArgs[Name] : unknown;

/** A tool. */
export interface ToolPlugin {
  name: string;
  /** The tool as a function of OpenAI's chat completions. */
  config: {
    type: "function";
    function: { name: string; description: string; parameters: Record<string, unknown> };
  };
  /** Calls the tool. Failures are results, not rejections. */
  execute: (args: Record<string, unknown>, context?: ToolContext) => Promise<ToolResult>;
  /** The arguments on one line, for the user. */
  formatCompactParams: (params: Record<string, unknown>, context?: ToolContext) => string;
}
