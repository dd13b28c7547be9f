// The tool runners of Anthropic's SDK with Pinfold's tools, and an API that says what the test says.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { Session } from "pinfold";
import { workspace } from "./workspace.mjs";

/** Runs a conversation in which the model makes each call in turn. Resolves to the requests and the results of the calls. */
async function converse(tools, calls) {
  const requests = [];
  const fetch = async (_url, { body }) => {
    const request = JSON.parse(body);
    requests.push(request);
    const call = calls[requests.length - 1];
    const use = call && { type: "tool_use", id: `call_${requests.length}`, name: call[0], input: call[1] };
    const message = {
      id: `message_${requests.length}`,
      type: "message",
      role: "assistant",
      model: "scripted",
      content: [use ?? { type: "text", text: "done" }],
      stop_reason: use ? "tool_use" : "end_turn",
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    return new Response(JSON.stringify(message), { headers: { "content-type": "application/json" } });
  };
  const client = new Anthropic({ apiKey: "none", fetch });
  const messages = [{ role: "user", content: "go" }];
  await client.beta.messages.toolRunner({ model: "scripted", max_tokens: 100, messages, tools }).runUntilDone();
  const results = requests.slice(1).map(({ messages }) => messages.at(-1).content[0]);
  assert.deepEqual(results.map((result) => result.tool_use_id), calls.map((_, number) => `call_${number + 1}`));
  return { requests, results };
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("Anthropic's tool runner runs the tools of the agent toolset", async (t) => {
  const root = workspace(t, { "src/a.txt": "one\n", "p.png": Buffer.from(pixel, "base64") });
  const tools = new Session({ root, dialect: "toolset" }).runnableTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["read", "write", "edit", "glob", "grep"]);
  const { requests, results } = await converse(tools, [
    ["read", { file_path: "src/a.txt" }],
    ["edit", { file_path: "src/a.txt", old_string: "one", new_string: "two" }],
    ["read", { file_path: "p.png" }],
    ["read", { file_path: "/etc/passwd" }],
    ["read", { path: "src/a.txt" }],
  ]);
  const declared = tools.map(({ name, description, input_schema }) => ({ name, description, input_schema }));
  assert.deepEqual(requests[0].tools, declared);
  assert.equal(readFileSync(join(root, "src/a.txt"), "utf8"), "two\n");
  assert.match(results[0].content[0].text, /one/);
  assert.equal(results[2].content.at(-1).source.data, pixel);
  assert.deepEqual(results.map(({ is_error }) => is_error ?? false), [false, false, false, true, true]);
  assert.match(results[3].content, /^Error: .*`\/etc\/passwd` is outside the workspace/);
  assert.match(results[4].content, /file_path/);
});

test("a tool with a type of its own is declared by it, and runs", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const session = new Session({ root, dialect: "editor" });
  const name = "str_replace_based_edit_tool";
  const { requests, results } = await converse(session.runnableTools(), [[name, { command: "view", path: "a.txt" }]]);
  assert.deepEqual(requests[0].tools, [{ type: "text_editor_20250728", name, max_characters: 16000 }]);
  assert.match(results[0].content[0].text, /1\tone/);
});

test("the context of runnable tools holds for every call, and the runner's signal cancels", async (t) => {
  const root = workspace(t, { "sub/a.txt": "one\n" });
  const session = new Session({ root, dialect: "toolset" });
  const [read, write] = session.runnableTools({ workdir: join(root, "sub"), permissionMode: "plan" });
  assert.match((await read.run({ file_path: "a.txt" }))[0].text, /one/);
  await assert.rejects(write.run({ file_path: "b.txt", content: "" }), { code: "permission_denied" });
  const aborted = { signal: AbortSignal.abort() };
  await assert.rejects(read.run({ file_path: "a.txt" }, aborted), { name: "PinfoldError", code: "cancelled" });
});
