// Runs the command line with this process's standard streams.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { program as find } from "../dist/native.js";

/** Runs the program under a name, which decides what it does. */
export function run(name) {
  let program;
  try {
    program = find();
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    process.exit(2);
  }
  const child = spawn(program, process.argv.slice(2), { stdio: "inherit", argv0: name });
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => {
    console.error(`${name}: cannot run ${program}: ${error.message}`);
    process.exit(2);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}
