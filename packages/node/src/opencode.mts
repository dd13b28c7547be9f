/**
 * A plugin for opencode: the tools of the dialect `opencode`, which replace its own of the same names.
 *
 * The only export is the plugin, since opencode calls every export of a file in its directory of plugins.
 */
import { relative, resolve } from "node:path";
import { tool, type ToolDefinition } from "@opencode-ai/plugin/tool";
import { Session, type Options, type Question, type ToolPlugin, type ToolResult } from "./index.js";

type Context = Parameters<ToolDefinition["execute"]>[1];
type Request = Parameters<Context["ask"]>[0];
type Args = Record<string, unknown>;

/** How many sessions are kept; the least recently used one is dropped first. */
const maxSessions = 256;

/**
 * The plugin. `options` are those of a session but for `dialect` and `canUseTool`: opencode answers approval requests, by its
 * own permission rules. Without `root`, the fence is the worktree, or the project's directory where there is no worktree.
 */
export async function Pinfold(
  project: { directory: string; worktree: string },
  options: Omit<Options, "dialect" | "canUseTool"> = {},
): Promise<{ tool: Record<string, ToolDefinition> }> {
  for (const name of ["dialect", "canUseTool"]) {
    if (name in options) {
      throw new TypeError(`opencode's plugin has no option \`${name}\``);
    }
  }
  // In a directory without version control, the worktree is `/`.
  const root = project.worktree === "/" ? project.directory : project.worktree;
  // Every change asks, and opencode's rules answer, as for its own tools.
  const permissions = { mode: "default" as const, ...options.permissions };
  const open = (): Session => new Session({ root, ...options, permissions, dialect: "opencode" });
  const sessions = new Map<string, Session>();
  const sessionOf = (id: string): Session => {
    const session = sessions.get(id) ?? open();
    sessions.delete(id);
    sessions.set(id, session);
    for (const oldest of [...sessions.keys()].slice(0, -maxSessions)) {
      sessions.delete(oldest);
    }
    return session;
  };
  const run = async (name: string, args: Args, context: Context): Promise<Ran> => {
    const session = sessionOf(context.sessionID);
    // With roots of the user's choice, relative paths start at the first one.
    const workdir = options.root === undefined ? context.directory : undefined;
    const approvals = new Approvals(context, workdir ?? [options.root].flat()[0] ?? root, args);
    await approvals.beforeReading(name);
    const result = await session.call(name, args, {
      workdir,
      abortSignal: context.abort,
      canUseToolCallback: (_tool, _args, question) => approvals.answer(question),
    });
    if (approvals.rejection !== undefined) {
      // Opencode's own error, by which it recognises a denial.
      throw approvals.rejection.error;
    }
    return ran(result, session.formatCompactParams(name, args));
  };
  const defined = open().tools.map(({ name, config }) => {
    const { description, parameters } = config.function;
    return [name, tool({ description, args: shape(parameters), execute: (args, context) => run(name, args, context) })];
  });
  return { tool: Object.fromEntries(defined) as Record<string, ToolDefinition> };
}

/** Asks opencode, under the names of permissions that its own tools use. `ask` rejects what is denied. */
class Approvals {
  readonly #context: Context;
  /** Where relative paths start. */
  readonly #start: string;
  readonly #args: Args;
  readonly #given = new Set<string>();
  /** The error with which `ask` rejected an approval request. */
  rejection: { error: unknown } | undefined;

  constructor(context: Context, start: string, args: Args) {
    this.#context = context;
    this.#start = start;
    this.#args = args;
  }

  /** The permissions that opencode's own tools request before they read. For tools that change files, the request has the diff. */
  async beforeReading(name: string): Promise<void> {
    const subject = this.#args[name === "read" ? "filePath" : "pattern"];
    if (["read", "glob", "grep"].includes(name) && typeof subject === "string") {
      await this.#ask(name, [name === "read" ? this.#relative(subject) : subject], this.#args);
    }
  }

  async answer({ operation, path, diff }: Question): Promise<boolean> {
    const permission = operation === "Read" ? "read" : "edit";
    try {
      // One request is about all files of a patch, and names the first.
      const paths = new Set([path, ...patchedPaths(this.#args["patchText"])].map((it) => this.#relative(it)));
      await this.#ask(permission, [...paths], { filepath: path, ...(diff !== null && { diff }) });
      return true;
    } catch (error) {
      this.rejection ??= { error };
      return false;
    }
  }

  async #ask(permission: string, patterns: string[], metadata: Request["metadata"]): Promise<void> {
    const key = JSON.stringify([permission, patterns]);
    if (permission !== "edit" && this.#given.has(key)) {
      return;
    }
    await this.#context.ask({ permission, patterns, always: ["*"], metadata });
    this.#given.add(key);
  }

  #relative(path: string): string {
    return relative(this.#context.worktree, resolve(this.#start, path)) || ".";
  }
}

/** The paths that the headers of a patch name. */
function patchedPaths(patch: unknown): string[] {
  const header = /^\s*\*\*\* (?:(?:Add|Update|Delete) File|Move to):([^\n]*)/gm;
  return typeof patch === "string" ? [...patch.matchAll(header)].map(([, path = ""]) => path.trim()) : [];
}

type Ran = Exclude<Awaited<ReturnType<ToolDefinition["execute"]>>, string>;

/** A result in opencode's form. A failure is thrown, and the model reads its message. */
function ran({ success, content, error, images = [] }: ToolResult, title: string): Ran {
  if (!success) {
    throw new Error(error);
  }
  const attachments = images.map(({ data, mediaType }) => ({
    type: "file" as const,
    mime: mediaType,
    url: `data:${mediaType};base64,${data}`,
  }));
  return { title, output: content, ...(attachments.length > 0 && { attachments }) };
}

/** The parameters of a tool as a Zod shape: strings, integers and booleans, which is all that the dialect has. */
function shape(parameters: ToolPlugin["config"]["function"]["parameters"]): ToolDefinition["args"] {
  type Property = { type: string; description: string; minimum?: number; maximum?: number };
  const { properties, required } = parameters as { properties: Record<string, Property>; required: string[] };
  const z = tool.schema;
  const integer = ({ minimum, maximum }: Property) =>
    z.int().min(minimum ?? Number.MIN_SAFE_INTEGER).max(maximum ?? Number.MAX_SAFE_INTEGER);
  const kinds = { string: () => z.string(), boolean: () => z.boolean(), integer };
  const entries = Object.entries(properties).map(([name, property]) => {
    if (!(property.type in kinds)) {
      throw new Error(`the argument \`${name}\` has the type ${property.type}, which is none of ${Object.keys(kinds)}`);
    }
    const kind = kinds[property.type as keyof typeof kinds](property);
    return [name, (required.includes(name) ? kind : kind.optional()).describe(property.description)];
  });
  return Object.fromEntries(entries) as ToolDefinition["args"];
}
