#!/usr/bin/env node
// Runs the command line that lies beside the native part, on this process's own streams.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL(`../native/pinfold-${process.platform}-${process.arch}`, import.meta.url));
if (!existsSync(program)) {
  console.error(`pinfold: this package has no ${program}; it was built for another machine, or not at all`);
  process.exit(2);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`pinfold: cannot run ${program}: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
