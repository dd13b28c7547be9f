import { resolve } from "node:path";
import { load, type NativeCall, type NativeSession } from "./native.js";
import { plain, wordsOf, written } from "./plain.js";
import { isSignal, watch } from "./signals.js";
import type {
  ArgsOf,
  CanUseTool,
  DataOf,
  Decision,
  Dialect,
  Options,
  PermissionManager,
  Question,
  SchemaFormat,
  ToolContext,
  ToolPlugin,
  ToolResult,
} from "./types.js";

export type * from "./generated.js";
export type * from "./types.js";

const native = load();

/** One agent's conversation with a workspace: it remembers what was read. Calls can be made at once. */
export class Session {
  readonly #native: NativeSession;
  readonly #canUseTool: CanUseTool | undefined;
  /** The tools, which all work on this session. */
  readonly tools: readonly ToolPlugin[];

  constructor(options: Options = {}) {
    const { canUseTool, ...rest } = plainly(options);
    if (canUseTool !== undefined && typeof canUseTool !== "function") {
      throw new TypeError("the option `canUseTool` must be a function");
    }
    this.#canUseTool = canUseTool;
    this.#native = new native.NativeSession(JSON.stringify(plain(rest, "")));
    this.tools = this.#plugins();
  }

  /** Makes a call. Failures are results, not rejections. */
  async call<const Name extends string>(
    tool: Name,
    args: ArgsOf<Name>,
    context?: ToolContext,
  ): Promise<ToolResult<DataOf<Name>>> {
    const call = new native.NativeCall();
    const said = written(args);
    const about = contextOf(context, said.problem);
    const stops = about.signals.map((signal) => watch(signal, () => call.cancel()));
    try {
      // What somebody decides about is what is done, whatever becomes of the arguments meanwhile.
      const ask = this.#asker(String(tool), said.text, context, call);
      const answer = await this.#native.start(String(tool), said.text, about.text, call, ask);
      return result(answer) as ToolResult<DataOf<Name>>;
    } finally {
      stops.forEach((stop) => stop());
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
        const { text, problem } = written(await decide(JSON.parse(question) as Question));
        return problem === undefined ? text : denial(problem);
      } catch (error) {
        return denial(wordsOf(error));
      }
    };
    return (question) => {
      void decided(question).then((decision) => call.decide(decision));
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
  const { dialect, ...unknown } = plainly(options);
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
  return JSON.stringify({ behavior: "deny", message: `whoever decides here failed: ${problem}` });
}

/** The options, which must not hide anything. */
function plainly(options: Options): Options {
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

/** What the engine is told about a call, and the signals that end it. */
function contextOf(
  context: ToolContext | undefined,
  unwritten: string | undefined,
): { text: string; signals: AbortSignal[] } {
  let problem = unwritten && `the arguments are not JSON: ${unwritten}`;
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
    // Now, and not when the call gets its turn.
    workdir: typeof workdir === "string" ? resolve(workdir) : workdir,
    permission_mode: context?.permissionMode,
    dry_run: context?.dryRun,
  };
  const { text, problem: wrong } = written(about);
  problem ??= wrong && `the call's context: ${wrong}`;
  return { text: problem === undefined ? text : JSON.stringify({ problem }), signals };
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
