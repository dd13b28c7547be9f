import { NativeCall, NativeSession, schemas } from "../native/index.js";
import type {
  ArgsOf,
  CanUseTool,
  DataOf,
  Decision,
  Dialect,
  Options,
  Question,
  SchemaFormat,
  ToolContext,
  ToolPlugin,
  ToolResult,
} from "./types.js";
import type { ToolArgs } from "./generated.js";

export type * from "./generated.js";
export type * from "./types.js";

/** One agent's conversation with a workspace: it remembers what was read. Calls can be made at once. */
export class Session {
  readonly #native: NativeSession;
  readonly #canUseTool: CanUseTool | undefined;
  /** The tools, which all work on this session. */
  readonly tools: readonly ToolPlugin[];

  constructor(options: Options = {}) {
    const { canUseTool, ...rest } = options;
    if (canUseTool !== undefined && typeof canUseTool !== "function") {
      throw new TypeError("the option `canUseTool` must be a function");
    }
    this.#canUseTool = canUseTool;
    // What JSON would leave out without a word must be refused by its name.
    const visible = (_: string, value: unknown): unknown =>
      typeof value === "function" || typeof value === "symbol" ? String(value) : value;
    this.#native = new NativeSession(JSON.stringify(rest, visible));
    this.tools = this.#plugins();
  }

  /** Makes a call. Failures are results, not rejections. */
  async call<Name extends keyof ToolArgs>(
    tool: Name,
    args: ArgsOf<Name>,
    context?: ToolContext,
  ): Promise<ToolResult<DataOf<Name>>>;
  async call(tool: string, args: unknown, context?: ToolContext): Promise<ToolResult>;
  async call(tool: string, args: unknown, context?: ToolContext): Promise<ToolResult> {
    const call = new NativeCall();
    const signal = context?.abortSignal ?? context?.signal;
    const cancel = (): void => call.cancel();
    if (signal?.aborted) {
      cancel();
    }
    signal?.addEventListener("abort", cancel, { once: true });
    const said = written(args);
    const about = JSON.stringify({
      workdir: context?.workdir,
      permission_mode: context?.permissionMode,
      dry_run: context?.dryRun,
      problem: said.problem,
    });
    const ask = this.#asker(tool, args, context, call);
    try {
      return result(await this.#native.start(tool, said.text, about, call, ask));
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** The tools in the form of a provider. */
  toolSchemas(format: SchemaFormat): Array<Record<string, unknown>> {
    return listed(this.#native.schemas(format));
  }

  /** The arguments of a call on one line, for a person. */
  formatCompactParams(tool: string, params: unknown): string {
    return this.#native.compact(tool, written(params).text);
  }

  /** Puts questions to whoever decides, if somebody does. */
  #asker(
    tool: string,
    args: unknown,
    context: ToolContext | undefined,
    call: NativeCall,
  ): ((question: string) => void) | undefined {
    const decide = decider(tool, args, context, this.#canUseTool);
    if (decide === undefined) {
      return undefined;
    }
    const decided = async (question: Question): Promise<unknown> => {
      try {
        return await decide(question);
      } catch (error) {
        return { behavior: "deny", message: `whoever decides here failed: ${wordsOf(error)}` };
      }
    };
    return (question) => {
      void decided(JSON.parse(question) as Question).then((decision) => {
        call.decide(written(decision).text);
      });
    };
  }

  #plugins(): readonly ToolPlugin[] {
    type Described = { name: string };
    type Function = ToolPlugin["config"];
    const described = JSON.parse(this.#native.describe()) as Described[];
    const configs = JSON.parse(this.#native.schemas("openai")) as Function[];
    return described.map(({ name }, number) => ({
      name,
      config: configs[number] as Function,
      execute: (args, context) => this.call(name, args, context),
      formatCompactParams: (params) => this.formatCompactParams(name, params),
    }));
  }
}

/** Tools on a session of their own. */
export function createTools(options?: Options): ToolPlugin[] {
  return [...new Session(options).tools];
}

/** The tools of some dialects in the form of a provider, for a request to a model. */
export function toolSchemas(
  format: SchemaFormat,
  options: { dialect?: Dialect | readonly Dialect[] } = {},
): Array<Record<string, unknown>> {
  const dialects = options.dialect ?? "classic";
  return listed(schemas(format, typeof dialects === "string" ? [dialects] : [...dialects]));
}

function decider(
  tool: string,
  args: unknown,
  context: ToolContext | undefined,
  canUseTool: CanUseTool | undefined,
): ((question: Question) => boolean | Decision | Promise<boolean | Decision>) | undefined {
  const callback = context?.canUseToolCallback ?? canUseTool;
  const manager = context?.permissionManager;
  if (typeof manager?.checkPermission === "function") {
    return (question) =>
      manager.checkPermission!({
        ...question,
        toolName: tool,
        toolInput: args as Record<string, unknown>,
        permissionMode: context?.permissionMode,
        canUseToolCallback: callback,
      });
  }
  return callback && ((question) => callback(tool, args, question));
}

/** A value as JSON, or why it is none. What is not given is an empty object. */
function written(value: unknown): { text: string; problem?: string } {
  try {
    return { text: JSON.stringify(value ?? {}) ?? "null" };
  } catch (error) {
    return { text: "null", problem: wordsOf(error) };
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function listed(text: string): Array<Record<string, unknown>> {
  const list = JSON.parse(text) as Array<Record<string, unknown>> | { tools: Array<Record<string, unknown>> };
  return Array.isArray(list) ? list : list.tools;
}

function result(text: string): ToolResult {
  const answer = JSON.parse(text) as ToolResult;
  if (answer.data !== undefined) {
    // An object, which a model reads as JSON.
    answer.content = answer.success ? JSON.stringify(answer.data) : "";
  }
  return answer;
}
