/** Finds and loads the native part: `pinfold.node`, and the command line beside it. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** One call: cancels it, and takes decisions for it. */
export interface NativeCall {
  cancel(): void;
  decide(decision: string): void;
}

/** The exports of `rust/lib.rs`: arguments and results are JSON text. */
export interface NativeSession {
  start(
    tool: string,
    args: string,
    context: string,
    call: NativeCall,
    ask: ((question: string) => void) | undefined,
  ): Promise<string>;
  compactParams(tool: string, args: string): string;
  describe(): string;
  schemas(format: string): string;
}

export interface Native {
  NativeCall: new () => NativeCall;
  NativeSession: new (options: string) => NativeSession;
  schemas(format: string, dialects: string[]): string;
}

/** The package of this platform. Its program is static; its addon needs glibc. */
const platformPackage = `pinfold-${process.platform}-${process.arch}`;

/** The directories that may have the native part: the one that a checkout builds, then the platform's package. */
function directories(): string[] {
  const found = [join(__dirname, "..", "native")];
  try {
    found.push(dirname(require.resolve(`${platformPackage}/package.json`)));
  } catch {
    // Not installed.
  }
  return found;
}

/** The command line's path. Throws if there is none for this platform. */
export function program(): string {
  const found = directories().map((directory) => join(directory, "pinfold")).find(existsSync);
  if (found === undefined) {
    throw new Error(`the package ${platformPackage} is not installed`);
  }
  return found;
}

/** Loads the native part. Throws if there is none for this platform. */
export function load(): Native {
  const problems: string[] = [];
  for (const directory of directories()) {
    const path = join(directory, "pinfold.node");
    if (existsSync(path)) {
      try {
        return require(path) as Native;
      } catch (error) {
        problems.push(`${path}: ${String(error)}`);
      }
    }
  }
  const needs = `it is in the package ${platformPackage}, and needs glibc on Linux`;
  throw new Error(["cannot load pinfold's native part", ...problems, needs].join("\n"));
}
