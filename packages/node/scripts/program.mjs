// Builds the command line, and puts it beside the native part.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, renameSync } from "node:fs";
import { fileURLToPath } from "node:url";

const home = fileURLToPath(new URL("..", import.meta.url));
const profile = process.argv.includes("--release") ? ["--release"] : [];
const build = ["build", "--package", "pinfold-cli", "--locked", "--message-format", "json-render-diagnostics", ...profile];
const messages = execFileSync("cargo", build, { cwd: home, stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 30 });
const built = String(messages)
  .split("\n")
  .filter((line) => line.startsWith("{"))
  .map((line) => JSON.parse(line))
  .find((message) => message.executable && message.target.name === "pinfold");
mkdirSync(`${home}/native`, { recursive: true });
const place = `${home}/native/pinfold-${process.platform}-${process.arch}`;
copyFileSync(built.executable, `${place}.new`);
// Not written over: a server may be running from it.
renameSync(`${place}.new`, place);
