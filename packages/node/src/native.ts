/** Finds and loads the native part: `pinfold.node`, and the command line beside it. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** One call: cancels it, and takes decisions for it. */
export interface NativeCall {
  cancel(): void;
  decide(decision: string): void;
}

/** What `rust/lib.rs` exports: arguments and results are JSON text. */
export interface NativeSession {
  start(
    tool: string,
    args: string,
    context: string,
    call: NativeCall,
    ask: ((question: string) => void) | undefined,
  ): Promise<string>;
  compact(tool: string, args: string): string;
  describe(): string;
  schemas(format: string): string;
}

export interface Native {
  NativeCall: new () => NativeCall;
  NativeSession: new (options: string) => NativeSession;
  schemas(format: string, dialects: string[]): string;
}

/** The packages of this platform. npm installs the one for the system's libc; other managers may install both. */
const packages = ["gnu", "musl"].map((libc) => `pinfold-${process.platform}-${process.arch}-${libc}`);

/** The directories that may have the native part: the one that a checkout builds, then the platform's packages. */
function directories(): string[] {
  const found = [join(__dirname, "..", "native")];
  for (const name of packages) {
    try {
      found.push(dirname(require.resolve(`${name}/package.json`)));
    } catch {
      // Not installed.
    }
  }
  return found;
}

/** The command line's path. Throws if there is none for this platform. */
export function program(): string {
  const found = directories().map((directory) => join(directory, "pinfold")).find(existsSync);
  if (found === undefined) {
    throw new Error(`none of these packages is installed: ${packages.join(", ")}`);
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
  throw new Error(["cannot load pinfold's native part", ...problems, `it is in one of ${packages.join(", ")}`].join("\n"));
}
