// Lists and calls every tool of every dialect with the official TypeScript client, over standard
// input and output and over HTTP. Called with the path of `pinfold`; node_modules is where NODE_PATH
// says.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.NODE_PATH, "x"));
const sdk = async (part) =>
  import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${part}`)));
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const { ElicitRequestSchema, ListRootsRequestSchema } = await sdk("types.js");

const pinfold = process.argv[2];
const dialects = JSON.parse(readFileSync(new URL("calls.json", import.meta.url)));
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

async function check(transport, root, calls) {
  const client = new Client({ name: "check", version: "1" }, { capabilities: { roots: {} } });
  client.setRequestHandler(ListRootsRequestSchema, async () => ({
    roots: [{ uri: pathToFileURL(root).href }],
  }));
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, "pinfold");
  // From here on the client checks structured answers against the output schemas itself.
  const { tools } = await client.listTools();
  const left = new Set(tools.map((tool) => tool.name));
  for (const [name, args, expected] of calls) {
    left.delete(name);
    const filled = JSON.parse(JSON.stringify(args).replaceAll("$ROOT", root));
    const result = await client.callTool({ name, arguments: filled });
    const says = `${name}: ${JSON.stringify(result)}`;
    assert.equal(result.isError, "error" in expected, says);
    if (expected.structured) {
      for (const [key, value] of Object.entries(expected.structured))
        assert.deepEqual(result.structuredContent[key], value, says);
    } else if (expected.image) {
      const image = result.content.find((block) => block.type === "image");
      assert.equal(image.mimeType, expected.image, says);
      assert.equal(image.data, PNG, says);
    } else {
      const text = (expected.text ?? expected.error).replaceAll("$ROOT", root);
      assert.ok(result.content[0].text.includes(text), says);
    }
  }
  assert.deepEqual([...left], [], "tools that were not called");
  await assert.rejects(client.callTool({ name: "Nope", arguments: {} }), /there is no tool/);
  await client.close();
}

// The client asks the user for approval before a change.
async function checkAsking(transport, root) {
  const answers = ["allow once", "deny", "allow for this session"];
  const client = new Client(
    { name: "check", version: "1" },
    { capabilities: { elicitation: {} } },
  );
  client.setRequestHandler(ElicitRequestSchema, async (request) => {
    assert.match(request.params.message, /Allow changing .*asked\.txt/);
    return { action: "accept", content: { answer: answers.shift(), reason: "not now" } };
  });
  await client.connect(transport);
  const write = async (content) => {
    const args = { path: "asked.txt", content };
    return (await client.callTool({ name: "file.write", arguments: args })).content[0].text;
  };
  assert.match(await write("1"), /"success":true/);
  assert.match(await write("2"), /permission_denied.*not now/);
  assert.equal(readFileSync(join(root, "asked.txt"), "utf8"), "1");
  assert.match(await write("3"), /"success":true/);
  assert.match(await write("4"), /"success":true/);
  assert.deepEqual(answers, []);
  await client.close();
}

function workspace() {
  const root = mkdtempSync(join(tmpdir(), "pinfold-client-"));
  writeFileSync(join(root, "dot.png"), Buffer.from(PNG, "base64"));
  return root;
}

const served = ["serve", "--no-journal", "--root"];
for (const [dialect, calls] of Object.entries(dialects)) {
  const root = workspace();
  const args = [...served, root, "--dialect", dialect];
  await check(new StdioClientTransport({ command: pinfold, args }), root, calls);
  rmSync(root, { recursive: true });
  console.log(`stdio, ${dialect}: ${calls.length} calls`);
}

const asked = workspace();
const asking = [...served, asked, "--dialect", "dotted", "--mode", "default"];
await checkAsking(new StdioClientTransport({ command: pinfold, args: asking }), asked);
rmSync(asked, { recursive: true });
console.log("stdio, asking: 4 calls");

const root = workspace();
const token = join(root, ".token");
const args = [...served, root, "--dialect", "all", "--http", "127.0.0.1:0", "--token-file", token];
args.push("--ask", "Edit(asked.txt)");
const server = spawn(pinfold, args, { stdio: ["ignore", "ignore", "pipe"] });
const lines = createInterface({ input: server.stderr })[Symbol.asyncIterator]();
const url = new URL((await lines.next()).value.replace("listening on ", ""));
assert.match((await lines.next()).value, /the token is in /);
const headers = { Authorization: `Bearer ${readFileSync(token, "utf8").trim()}` };
const all = Object.values(dialects).flat();
await check(new StreamableHTTPClientTransport(url, { requestInit: { headers } }), root, all);
await checkAsking(new StreamableHTTPClientTransport(url, { requestInit: { headers } }), root);
await assert.rejects(
  new Client({ name: "check", version: "1" }).connect(new StreamableHTTPClientTransport(url)),
);
server.kill();
rmSync(root, { recursive: true });
console.log(`http, all: ${all.length} calls`);
