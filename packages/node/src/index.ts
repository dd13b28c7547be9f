import { resolve } from "node:path";
import type { Dialect } from "./generated.js";
import { load, type NativeCall, type NativeSession } from "./native.js";
import { messageOf, plain, stringify } from "./plain.js";
import { isSignal, watch } from "./signals.js";
import type {
  AnthropicTool,
  ArgsOf,
  CanUseTool,
  ContentBlock,
  DataOf,
  Decision,
  ImageType,
  Options,
  PatchCall,
  PatchOperation,
  PatchResult,
  PermissionManager,
  Question,
  RewindOptions,
  Rewound,
  RunnableTool,
  SchemaFormat,
  ToolContext,
  ToolPlugin,
  ToolResult,
  ToolResultBlock,
  ToolUseBlock,
} from "./types.js";

export type * from "./generated.js";
export type * from "./types.js";

const native = load();

/** The tools on a workspace, for one agent. A session records which files were read. Calls may run at the same time. */
export class Session {
  readonly #native: NativeSession;
  readonly #canUseTool: CanUseTool | undefined;
  /** The tools on this session. */
  readonly tools: readonly ToolPlugin[];

  constructor(options: Options = {}) {
    const { canUseTool, ...rest } = checkPlain(options);
    if (canUseTool !== undefined && typeof canUseTool !== "function") {
      throw new TypeError("the option `canUseTool` must be a function");
    }
    this.#canUseTool = canUseTool;
    this.#native = new native.NativeSession(JSON.stringify(plain(rest, "")));
    this.tools = this.#plugins();
  }

  /** Calls a tool. Failures are results, not rejections. */
  async call<const Name extends string>(
    tool: Name,
    args: ArgsOf<Name>,
    context?: ToolContext,
  ): Promise<ToolResult<DataOf<Name>>> {
    return (await this.#start(tool, args, context)) as ToolResult<DataOf<Name>>;
  }

  /**
   * Adds a checkpoint: `rewind` can undo everything that is changed after it. Resolves to the checkpoint's id.
   * Needs the option `journal`; rejects with a `PinfoldError` without one.
   */
  async checkpoint(label = ""): Promise<string> {
    return ((await this.#operate("checkpoint", { label })) as { id: string }).id;
  }

  /**
   * Undoes all changes of this session since a checkpoint, by its id or label, or after a change, by its id: all of them,
   * or none if somebody else has changed one of the files since. Rejects with a `PinfoldError` if that cannot be planned.
   */
  async rewind(to: string, options: RewindOptions = {}): Promise<Rewound> {
    const { everybody, leaveOutConflicts, ...context } = options;
    const args = { to, everybody: everybody ?? false, leave_out_conflicts: leaveOutConflicts ?? false };
    return camelCased(await this.#operate("rewind", args, context)) as Rewound;
  }

  async #operate(operation: "checkpoint" | "rewind", args: unknown, context?: ToolContext): Promise<unknown> {
    const result = await this.#start(operation, args, context, operation);
    if (!result.success) {
      throw failed(result);
    }
    return result.data;
  }

  /** Calls a tool, or performs an operation that models cannot name. */
  async #start(
    tool: string,
    args: unknown,
    context: ToolContext | undefined,
    operation?: string,
  ): Promise<ToolResult> {
    const call = new native.NativeCall();
    const json = stringify(args);
    const about = contextOf(context, json.problem, operation);
    const unwatch = about.signals.map((signal) => watch(signal, () => call.cancel()));
    try {
      // The callback gets a copy of the arguments that the call runs with: the caller may change the object meanwhile.
      const ask = this.#asker(String(tool), json.text, context, call);
      const answer = await this.#native.start(String(tool), json.text, about.text, call, ask);
      return result(answer);
    } finally {
      unwatch.forEach((stop) => stop());
    }
  }

  /**
   * Makes the call of a `tool_use` block of Anthropic's messages, and resolves to its `tool_result` block.
   * Failures are blocks with `is_error`, not rejections.
   */
  async toolResult(block: ToolUseBlock, context?: ToolContext): Promise<ToolResultBlock> {
    const result = await this.call(block.name, block.input, context);
    const content = contentBlocks(result);
    return { type: "tool_result", tool_use_id: block.id, content, is_error: !result.success };
  }

  /**
   * The tools for the tool runners of Anthropic's SDK, which call them by name: those of messages and of managed agents.
   * `context` holds for every call; the runner's signal cancels a call, too. A failure is thrown as a `PinfoldError`, which the
   * runner turns into a result with `is_error`.
   */
  runnableTools(context?: ToolContext): RunnableTool[] {
    return (this.toolSchemas("anthropic") as unknown as AnthropicTool[]).map((tool) => ({
      ...tool,
      parse: (input) => input,
      run: async (input, running) => {
        const signal = running?.signal ?? context?.signal;
        const result = await this.call(tool.name, input, { ...context, signal });
        if (!result.success) {
          throw failed(result);
        }
        return contentBlocks(result);
      },
    }));
  }

  /**
   * Applies the operation of an `apply_patch_call` item of OpenAI's responses, and resolves to the status and the output of its
   * `apply_patch_call_output`. Takes the item or its operation. The session may have any dialect. Failures are outputs, not rejections.
   */
  async patchResult(call: PatchCall | PatchOperation, context?: ToolContext): Promise<PatchResult> {
    const { success, content, error } = await this.#start("apply_patch", call, context, "hosted_patch");
    return success ? { status: "completed", output: content } : { status: "failed", output: error ?? "" };
  }

  /** The tools in the format of a model provider. */
  toolSchemas(format: SchemaFormat): Array<Record<string, unknown>> {
    return listed(this.#native.schemas(format));
  }

  /** The arguments of a call on one line, for the user. */
  formatCompactParams(tool: string, params: unknown): string {
    return this.#native.compactParams(tool, stringify(params).text);
  }

  /** Passes approval requests to the callback, if there is one. */
  #asker(
    tool: string,
    args: string,
    context: ToolContext | undefined,
    call: NativeCall,
  ): ((question: string) => void) | undefined {
    const decide = decider(tool, args, context, this.#canUseTool);
    if (decide === undefined) {
      return undefined;
    }
    const decided = async (question: string): Promise<string> => {
      try {
        const { text, problem } = stringify(await decide(JSON.parse(question) as Question));
        return problem === undefined ? text : denial(problem);
      } catch (error) {
        return denial(messageOf(error));
      }
    };
    return (question) => {
      void decided(question).then((decision) => call.decide(decision));
    };
  }

  #plugins(): readonly ToolPlugin[] {
    type Described = { name: string; description: string; parameters: Record<string, unknown> };
    const described = JSON.parse(this.#native.describe()) as Described[];
    return described.map(({ name, description, parameters }) => ({
      name,
      // A function for every tool, also for one that the list for OpenAI has as a custom tool with a grammar.
      config: { type: "function", function: { name: name.replaceAll(".", "_"), description, parameters } },
      execute: (args, context) => this.call(name, args, context),
      formatCompactParams: (params) => this.formatCompactParams(name, params),
    }));
  }
}

/** The failure of a checkpoint, a rewind or a runnable tool. `code` is its kind, as in `metadata.code` of a result. */
export class PinfoldError extends Error {
  override readonly name = "PinfoldError";

  constructor(
    message: string,
    readonly code: string,
  ) {
    super(message);
  }
}

function failed({ error, metadata }: ToolResult): PinfoldError {
  return new PinfoldError(error ?? "", String(metadata?.["code"]));
}

/** The part of a result for the model, as blocks of Anthropic's messages. */
function contentBlocks({ success, content, error, images = [] }: ToolResult): ContentBlock[] {
  const pictures = images.map(({ data, mediaType }) => ({
    type: "image" as const,
    source: { type: "base64" as const, media_type: mediaType as ImageType, data },
  }));
  const text = { type: "text" as const, text: (success ? content : error) ?? "" };
  // The API refuses a block of text without text.
  return text.text === "" ? pictures : [text, ...pictures];
}

/** The tools on a new session. */
export function createTools(options?: Options): ToolPlugin[] {
  return [...new Session(options).tools];
}

/** The tools of some dialects in the format of a model provider. */
export function toolSchemas(
  format: SchemaFormat,
  options: { dialect?: Dialect | readonly Dialect[] } = {},
): Array<Record<string, unknown>> {
  const { dialect, ...unknown } = checkPlain(options);
  for (const name of Object.keys(unknown)) {
    throw new TypeError(`there is no option \`${name}\` here; there is \`dialect\``);
  }
  const dialects = dialect ?? "classic";
  return listed(native.schemas(format, typeof dialects === "string" ? [dialects] : [...dialects]));
}

function decider(
  tool: string,
  args: string,
  context: ToolContext | undefined,
  canUseTool: CanUseTool | undefined,
): ((question: Question) => boolean | Decision | Promise<boolean | Decision>) | undefined {
  const callback = context?.canUseToolCallback ?? canUseTool;
  const manager = context?.permissionManager as PermissionManager | undefined;
  if (typeof manager?.checkPermission === "function") {
    return (question) =>
      manager.checkPermission({
        ...question,
        toolName: tool,
        toolInput: JSON.parse(args) as Record<string, unknown>,
        permissionMode: context?.permissionMode,
        canUseToolCallback: callback,
      });
  }
  return callback && ((question) => callback(tool, JSON.parse(args), question));
}

function denial(problem: string): string {
  return JSON.stringify({ failed: `the approval callback failed: ${problem}` });
}

/** Refuses options that are not a plain object, and functions other than `canUseTool`. */
function checkPlain(options: Options): Options {
  const prototype: unknown = typeof options === "object" && options && Object.getPrototypeOf(options);
  if (prototype !== Object.prototype && !(prototype === null && options !== null)) {
    throw new TypeError("the options must be a plain object");
  }
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === "function" && name !== "canUseTool") {
      throw new TypeError(`no option \`${name}\` is a function; \`canUseTool\` is`);
    }
  }
  return options;
}

/** The context as JSON text for the native part, and the signals that cancel the call. */
function contextOf(
  context: ToolContext | undefined,
  argsProblem: string | undefined,
  operation: string | undefined,
): { text: string; signals: AbortSignal[] } {
  let problem = argsProblem && `the arguments are not JSON: ${argsProblem}`;
  const signals: AbortSignal[] = [];
  for (const name of ["abortSignal", "signal"] as const) {
    const signal = context?.[name];
    if (isSignal(signal)) {
      signals.push(signal);
    } else if (signal !== undefined && signal !== null) {
      problem ??= `the call's context: \`${name}\` is no AbortSignal`;
    }
  }
  for (const [wrong, right] of [["dry_run", "dryRun"], ["permission_mode", "permissionMode"]] as const) {
    if (context !== undefined && context !== null && wrong in context) {
      problem ??= `the call's context has no \`${wrong}\`; there it is \`${right}\``;
    }
  }
  const workdir = context?.workdir;
  const about = {
    // Relative to the current directory now, not when the call runs.
    workdir: typeof workdir === "string" ? resolve(workdir) : workdir,
    permission_mode: context?.permissionMode,
    dry_run: context?.dryRun,
    operation,
  };
  const { text, problem: wrong } = stringify(about);
  problem ??= wrong && `the call's context: ${wrong}`;
  return { text: problem === undefined ? text : JSON.stringify({ problem }), signals };
}

/** An object of the native part with the names of this language, and without nulls. */
function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(camelCased);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const camel = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  const given = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(given.map(([name, inner]) => [camel(name), camelCased(inner)]));
}

function listed(text: string): Array<Record<string, unknown>> {
  const list = JSON.parse(text) as Array<Record<string, unknown>> | { tools: Array<Record<string, unknown>> };
  return Array.isArray(list) ? list : list.tools;
}

function result(text: string): ToolResult {
  const answer = JSON.parse(text) as ToolResult;
  // The model reads an object as JSON.
  answer.content ??= answer.success ? JSON.stringify(answer.data) : "";
  return answer;
}
