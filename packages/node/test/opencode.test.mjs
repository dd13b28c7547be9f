// The plugin for opencode, called as opencode calls it, with the package that plugins are written with.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tool } from "@opencode-ai/plugin";
import { toolSchemas } from "pinfold";
import * as module from "pinfold/opencode";
import { workspace } from "./workspace.mjs";

const { Pinfold } = module;

/** The context of a call, which keeps what was asked. `deny` are the permissions that the user's rules deny. */
function context(root, { sessionID = "one", deny = [], ...more } = {}) {
  const asked = [];
  const ask = async (request) => {
    asked.push(request);
    if (deny.includes(request.permission)) throw new Error("The user rejected permission to use this tool call.");
  };
  const about = { sessionID, messageID: "m", agent: "build", directory: root, worktree: root, metadata() {}, ask };
  return { ...about, abort: new AbortController().signal, asked, ...more };
}

test("every export is a plugin, and its tools are those of the dialect", async (t) => {
  assert.deepEqual(Object.keys(module), ["Pinfold"]);
  const root = workspace(t);
  const { tool: tools } = await Pinfold({ directory: root, worktree: root });
  const expected = toolSchemas("anthropic", { dialect: "opencode" });
  assert.deepEqual(Object.keys(tools), expected.map(({ name }) => name));
  for (const { name, description, input_schema } of expected) {
    assert.equal(tools[name].description, description);
    const schema = tool.schema.toJSONSchema(tool.schema.object(tools[name].args), { io: "input" });
    assert.deepEqual(new Set(schema.required), new Set(input_schema.required));
    assert.deepEqual(Object.keys(schema.properties), Object.keys(input_schema.properties));
    for (const [argument, property] of Object.entries(input_schema.properties)) {
      const expected = { maximum: Number.MAX_SAFE_INTEGER, ...property };
      if (property.type !== "integer") delete expected.maximum;
      assert.deepEqual(schema.properties[argument], expected, `${name}.${argument}`);
    }
  }
});

test("opencode's permission rules are asked as its own tools ask them", async (t) => {
  const root = workspace(t, { "src/a.txt": "one\n" });
  const { tool: tools } = await Pinfold({ directory: root, worktree: root });
  const directory = join(root, "src");
  const allowed = context(root, { directory });
  const read = await tools.read.execute({ filePath: "a.txt" }, allowed);
  assert.equal(read.title, "a.txt");
  assert.match(read.output, /1\tone/);
  assert.equal((await tools.grep.execute({ pattern: "on." }, allowed)).output.includes("a.txt"), true);
  const edit = { filePath: join(directory, "a.txt"), oldString: "one", newString: "two" };
  await tools.edit.execute(edit, allowed);
  assert.equal(readFileSync(edit.filePath, "utf8"), "two\n");
  const patterns = allowed.asked.map(({ permission, patterns: [pattern] }) => [permission, pattern]);
  assert.deepEqual(patterns, [["read", "src/a.txt"], ["grep", "on."], ["edit", "src/a.txt"]]);
  const { metadata, always } = allowed.asked[2];
  assert.equal(metadata.filepath, edit.filePath);
  assert.match(metadata.diff, /-one\n\+two/);
  assert.deepEqual(always, ["*"]);

  const denied = context(root, { deny: ["edit", "read"] });
  await assert.rejects(tools.read.execute({ filePath: "src/a.txt" }, denied), /The user rejected permission/);
  await assert.rejects(tools.edit.execute({ ...edit, oldString: "two", newString: "3" }, denied), /The user rejected permission/);
  const patchText = "*** Begin Patch\n*** Add File: b.txt\n+new\n*** Delete File: src/a.txt\n*** End Patch\n";
  await assert.rejects(tools.apply_patch.execute({ patchText }, denied), /^Error: The user rejected permission/);
  assert.equal(existsSync(join(root, "b.txt")), false);
  assert.equal(readFileSync(edit.filePath, "utf8"), "two\n");
  const patching = context(root);
  await tools.apply_patch.execute({ patchText }, patching);
  // A rule for any file of the patch holds.
  assert.deepEqual(new Set(patching.asked[0].patterns), new Set(["b.txt", "src/a.txt"]));
  assert.equal(readFileSync(join(root, "b.txt"), "utf8"), "new\n");
  assert.equal(existsSync(edit.filePath), false);
});

test("each conversation of opencode is a session of its own", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const { tool: tools } = await Pinfold({ directory: root, worktree: root });
  await tools.read.execute({ filePath: "a.txt" }, context(root));
  const write = { filePath: "a.txt", content: "two\n" };
  await assert.rejects(tools.write.execute(write, context(root, { sessionID: "two" })), /read/);
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n");
  await tools.write.execute(write, context(root));
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "two\n");
});

test("the fence is the worktree, the directory without one, or the option", async (t) => {
  const root = workspace(t, { "sub/a.txt": "one\n", "b.txt": "two\n" });
  const sub = join(root, "sub");
  const outside = { filePath: join(root, "b.txt") };
  const { tool: inWorktree } = await Pinfold({ directory: sub, worktree: root });
  assert.match((await inWorktree.read.execute(outside, context(root, { directory: sub }))).output, /two/);
  const { tool: without } = await Pinfold({ directory: sub, worktree: "/" });
  const plain = context(root, { directory: sub, worktree: "/" });
  assert.match((await without.read.execute({ filePath: "a.txt" }, plain)).output, /one/);
  await assert.rejects(without.read.execute(outside, plain), /outside the workspace/);
  const { tool: chosen } = await Pinfold({ directory: root, worktree: root }, { root: sub });
  const asking = context(root);
  assert.match((await chosen.read.execute({ filePath: "a.txt" }, asking)).output, /one/);
  assert.deepEqual(asking.asked[0].patterns, ["sub/a.txt"]);
  await assert.rejects(chosen.read.execute(outside, asking), /outside the workspace/);
});

test("images are attachments, an aborted call is cancelled, and options that are wrong are named", async (t) => {
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const root = workspace(t, { "p.png": Buffer.from(pixel, "base64"), "secrets/a": "one\n" });
  const project = { directory: root, worktree: root };
  const { tool: tools } = await Pinfold(project, { permissions: { deny: ["Read(secrets/**)"] } });
  const { attachments } = await tools.read.execute({ filePath: "p.png" }, context(root));
  assert.deepEqual(attachments, [{ type: "file", mime: "image/png", url: `data:image/png;base64,${pixel}` }]);
  await assert.rejects(tools.read.execute({ filePath: "secrets/a" }, context(root)), /Read\(secrets/);
  const abort = AbortSignal.abort();
  await assert.rejects(tools.read.execute({ filePath: "p.png" }, context(root, { abort })), /cancelled/);
  await assert.rejects(Pinfold(project, { dialect: "classic" }), /no option `dialect`/);
  await assert.rejects(Pinfold(project, { canUseTool: () => true }), /no option `canUseTool`/);
  await assert.rejects(Pinfold(project, { colour: 1 }), /colour/);
});
