// The AI SDK of Vercel.

import { mkdirSync, mkdtempSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pinfold, modules] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(createRequire(join(modules, "x.js")).resolve(name)));
const { createMCPClient, ElicitationRequestSchema } = await load("@ai-sdk/mcp");
const { Experimental_StdioMCPTransport: Stdio } = await load("@ai-sdk/mcp/mcp-stdio");

const steps = {};
const check = (step, works, printed) => {
  steps[step] = Boolean(works);
  if (!works) console.error(`${step}: ${JSON.stringify(printed)}`);
};

const base = mkdtempSync(join(tmpdir(), "pinfold-"));
const root = join(base, "work");
const file = join(root, "a.txt");
const start = async (more, capabilities) => {
  const env = {
    PATH: process.env.PATH,
    XDG_STATE_HOME: join(base, "state"),
    XDG_CONFIG_HOME: join(base, "config"),
  };
  const args = ["serve", "--root", root, ...more];
  return createMCPClient({ transport: new Stdio({ command: pinfold, args, env }), capabilities });
};

mkdirSync(root);
writeFileSync(file, "one\n  two\nthree\n");
const client = await start([]);
const tools = await client.tools();
const call = async (tools, name, args) => {
  const result = await tools[name].execute(args, { messages: [], toolCallId: "1" });
  return result.content.map((block) => block.text).join("");
};
check("list", ["Read", "Edit", "Grep"].every((name) => name in tools), Object.keys(tools));
let printed = await call(tools, "Read", { file_path: file });
check("read", printed.includes("     1\tone\n     2\t  two\n"), printed);
printed = await call(tools, "Edit", { file_path: file, old_string: "one", new_string: "1" });
check("edit", readFileSync(file, "utf8") === "1\n  two\nthree\n", printed);
printed = await call(tools, "Edit", { file_path: file, old_string: "  Two", new_string: "2" });
check("refused edit", printed.includes("old_string not found") && printed.includes("     2\t  two"), printed);
await client.close();

const asked = [];
const asking = await start(["--mode", "default"], { elicitation: {} });
asking.onElicitationRequest(ElicitationRequestSchema, async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { answer: "allow once" } };
});
const path = join(root, "new.txt");
printed = await call(await asking.tools(), "Write", { file_path: path, content: "new\n" });
check("approval", asked.length > 0 && existsSync(path), printed);
await asking.close();
// The server may still save what it has read.
rmSync(base, { recursive: true, force: true, maxRetries: 9, retryDelay: 100 });
console.log(JSON.stringify(steps));
