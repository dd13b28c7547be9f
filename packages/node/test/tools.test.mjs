import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Session, createTools, toolSchemas } from "pinfold";
import { workspace } from "./workspace.mjs";

const named = (tools, name) => tools.find((tool) => tool.name === name);

test("tools have the shape of plugins", (t) => {
  const tools = createTools({ root: workspace(t) });
  const names = ["Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Delete", "Move", "LS", "Glob", "Grep"];
  assert.deepEqual(tools.map((tool) => tool.name), names);
  for (const { name, config, execute, formatCompactParams } of tools) {
    assert.equal(config.type, "function");
    assert.equal(config.function.name, name);
    assert.ok(config.function.description.length > 20);
    assert.equal(config.function.parameters.type, "object");
    assert.equal(typeof execute, "function");
    assert.equal(typeof formatCompactParams, "function");
  }
});

test("a result is a value, whether the call succeeds or fails", async (t) => {
  const root = workspace(t, { "a.txt": "one\ntwo\n" });
  const read = named(createTools({ root }), "Read");
  const result = await read.execute({ file_path: join(root, "a.txt") }, { workdir: root });
  assert.equal(result.success, true);
  assert.equal(result.content, "     1\tone\n     2\ttwo\n");
  assert.equal(result.shortResult, "Read 2 lines");
  assert.equal(result.filePath, join(root, "a.txt"));
  assert.equal(result.metadata.total_lines, 2);
  assert.equal(read.formatCompactParams({ file_path: join(root, "a.txt"), offset: 2 }), "a.txt 2:2000");

  const missing = await read.execute({ file_path: join(root, "b.txt") }, { workdir: root });
  assert.equal(missing.success, false);
  assert.equal(missing.content, "");
  assert.match(missing.error, /File not found: .*b\.txt.*did you mean/);
  assert.equal(missing.metadata.code, "file_not_found");
});

test("arguments that are none are refused, and nothing rejects", async (t) => {
  const read = named(createTools({ root: workspace(t) }), "Read");
  const circular = {};
  circular.self = circular;
  const throwing = { get file_path() { throw new Error("no path today"); } };
  const bad = [undefined, null, 1, "text", [], () => 1, circular, { file_path: 1n }, throwing,
    { file_path: "\ud800" }, { file_path: "/x", colour: 1 }];
  for (const args of bad) {
    const result = await read.execute(args);
    assert.equal(result.success, false);
    assert.equal(result.metadata.code, "invalid_argument", result.error);
  }
  const result = await read.execute(throwing);
  assert.match(result.error, /no path today/);
});

test("what was read is remembered by its own session only", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const file_path = join(root, "a.txt");
  const edit = { file_path, old_string: "one", new_string: "two" };
  const [ours, theirs] = [createTools({ root }), createTools({ root })];
  await named(ours, "Read").execute({ file_path });
  const refused = await named(theirs, "Edit").execute(edit);
  assert.equal(refused.metadata.code, "not_read");
  assert.equal(readFileSync(file_path, "utf8"), "one\n");
  const done = await named(ours, "Edit").execute(edit);
  assert.equal(done.success, true, done.error);
  assert.equal(readFileSync(file_path, "utf8"), "two\n");
});

test("images come as data", async (t) => {
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const root = workspace(t, { "p.png": Buffer.from(pixel, "base64") });
  const result = await new Session({ root }).call("Read", { file_path: join(root, "p.png") });
  assert.deepEqual(result.images, [{ data: pixel, mediaType: "image/png" }]);
});

test("tools that answer with objects have them in `data`", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const tools = createTools({ root, dialect: ["dotted", "scoped"] });
  const result = await named(tools, "file.read").execute({ path: "a.txt" });
  assert.equal(result.data.total_lines, 1);
  assert.deepEqual(JSON.parse(result.content), result.data);
  assert.equal(named(tools, "file.read").config.function.name, "file_read");
  const missing = await named(tools, "read_file").execute({ path: "b.txt" });
  assert.equal(missing.success, false);
  assert.equal(missing.data.error, "FILESYSTEM_ERROR");
  assert.equal(missing.metadata.code, "FILESYSTEM_ERROR");
  assert.equal(missing.error, missing.data.message);
});

test("a tool can be called by the name that a provider was given", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const session = new Session({ root, dialect: "dotted" });
  assert.equal((await session.call("file_read", { path: "a.txt" })).success, true);
  const unknown = await session.call("file_burn", {});
  assert.equal(unknown.metadata.code, "unknown_tool");
});

test("options that are wrong are named", (t) => {
  const root = workspace(t);
  for (const [options, message] of [
    [{ root, dry_run: true }, /no setting `dry_run`; did you mean `dryRun`/],
    [{ root, canUseToolCallback: () => true }, /no option `canUseToolCallback` is a function; `canUseTool` is/],
    [{ root, canUseTool: "yes" }, /`canUseTool` must be a function/],
    [{ root, permissions: { mode: "careful" } }, /careful/],
    [{ root, permissions: { deny: ["Fly(**)"] } }, /Fly/],
    [{ root, dialect: "old" }, /the dialects are/],
    [{ root: join(root, "nowhere") }, /cannot use .*nowhere/],
    [{ root: 7 }, /`root` must be/],
    [{ root: NaN }, /`root` cannot be a number \(NaN\)/],
    [{ root, permissions: new Map([["deny", ["Read"]]]) }, /`permissions` must be a plain object/],
    [{ root, permissions: Object.create({ deny: ["Read"] }) }, /`permissions` must be a plain object/],
    [{ root, permissions: [] }, /`permissions` must be an object/],
    [{ root, permissions: { deny: [Symbol("x")] } }, /`permissions.deny\[0\]` cannot be a symbol/],
    [{ root, [Symbol("x")]: 1 }, /must be a plain object/],
    [new Map([["root", root]]), /must be a plain object/],
    [5, /must be a plain object/],
    [null, /must be a plain object/],
  ]) {
    assert.throws(() => createTools(options), message);
  }
});

test("settings have the names of the configuration file", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const session = new Session({ root, relativePaths: true, dryRun: true, readBeforeWrite: "off", journal: null });
  const result = await session.call("Write", { file_path: "a.txt", content: "two\n" });
  assert.match(result.content, /^\[Dry Run\] Would/);
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n");
  const real = await session.call("Write", { file_path: "b.txt", content: "b" }, { dryRun: false });
  assert.equal(real.success, true, real.error);
  assert.ok(existsSync(join(root, "b.txt")));
});

test("a working directory is where relative paths and searches start", async (t) => {
  const root = workspace(t, { "top.txt": "here\n", "sub/in.txt": "here\n" });
  const session = new Session({ root, relativePaths: true });
  const workdir = join(root, "sub");
  const read = await session.call("Read", { file_path: "in.txt" }, { workdir });
  assert.equal(read.success, true, read.error);
  const found = await session.call("Grep", { pattern: "here" }, { workdir });
  assert.equal(found.content.trim(), join(workdir, "in.txt"));
  for (const path of [".", "./", "../sub"]) {
    const listed = await session.call("LS", { path }, { workdir });
    assert.match(listed.content, /in\.txt/);
    assert.doesNotMatch(listed.content, /top\.txt/);
  }
  const dotted = await new Session({ root, dialect: "dotted" }).call("file.list", {}, { workdir });
  assert.deepEqual(dotted.data.files.map((file) => file.path), ["in.txt"]);
  const above = await session.call("Read", { file_path: "../top.txt" }, { workdir });
  assert.equal(above.success, true, above.error);
  const all = await session.call("Glob", { pattern: "**/*.txt" }, { workdir: root });
  assert.equal(all.metadata.count, 2);
  const outside = await session.call("Read", { file_path: "x" }, { workdir: "/" });
  assert.equal(outside.metadata.code, "invalid_argument");
  assert.match(outside.error, /not a directory in the workspace/);
  // A file that was read by one path counts as read by another.
  const edit = { file_path: join(workdir, "in.txt"), old_string: "here", new_string: "there" };
  assert.equal((await session.call("Edit", edit)).success, true);
});

test("schemas are there without a session", () => {
  assert.equal(toolSchemas("openai")[0].function.name, "Read");
  assert.equal(toolSchemas("anthropic", { dialect: "scoped" })[0].name, "read_file");
  assert.equal(toolSchemas("gemini", { dialect: "all" })[0].functionDeclarations.length, 22);
  assert.equal(toolSchemas("mcp").length, 10);
  assert.throws(() => toolSchemas("morse"), /the formats are/);
  assert.throws(() => toolSchemas("openai", { dialects: "dotted" }), /no option `dialects`/);
});

test("`import` and `require` give the same", () => {
  const required = createRequire(import.meta.url)("pinfold");
  assert.equal(required.Session, Session);
  assert.equal(required.createTools, createTools);
});

test("every call is in the audit log, those with bad arguments too", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const audit = join(workspace(t), "audit.jsonl");
  const session = new Session({ root, audit });
  await session.call("Read", { file_path: join(root, "a.txt") });
  await session.call("Read", { file_path: 1n });
  await session.call("Read", {}, { permissionMode: "careful" });
  const lines = readFileSync(audit, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.map((line) => line.outcome), ["ok", "invalid_argument", "invalid_argument"]);
});

test("files that change elsewhere are noticed", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const file_path = join(root, "a.txt");
  const session = new Session({ root });
  await session.call("Read", { file_path });
  writeFileSync(file_path, "other\n");
  const result = await session.call("Write", { file_path, content: "mine\n" });
  assert.equal(result.metadata.code, "file_changed");
  assert.equal(readFileSync(file_path, "utf8"), "other\n");
});

test("a tool_use block becomes its tool_result block", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const session = new Session({ root, dialect: "editor" });
  const name = "str_replace_based_edit_tool";
  const [entry] = session.toolSchemas("anthropic");
  assert.deepEqual(entry, { type: "text_editor_20250728", name, max_characters: 16000 });
  const use = (id, input) => session.toolResult({ type: "tool_use", id, name, input });
  assert.deepEqual(await use("1", { command: "view", path: "a.txt" }), {
    type: "tool_result",
    tool_use_id: "1",
    content: [{ type: "text", text: "Here's the result of running `cat -n` on a.txt:\n     1\tone\n" }],
    is_error: false,
  });
  const failed = await use("2", { command: "view", path: "b.txt" });
  assert.equal(failed.is_error, true);
  assert.match(failed.content[0].text, /^The path b\.txt does not exist\. /);
});

test("an operation of OpenAI's hosted apply_patch becomes its output, in any dialect", async (t) => {
  const root = workspace(t, { "a.txt": "one\ntwo\n" });
  const audit = join(workspace(t), "audit.jsonl");
  const session = new Session({ root, dialect: "dotted", audit, permissions: { deny: ["Write(secret/**)"] } });
  const create = { type: "create_file", path: "b.txt", diff: "+new" };
  const item = { type: "apply_patch_call", id: "1", call_id: "2", status: "completed", operation: create };
  const created = { status: "completed", output: "Success. Updated the following files:\nA b.txt\n" };
  assert.deepEqual(await session.patchResult(item, { dryRun: false }), created);
  assert.equal(readFileSync(join(root, "b.txt"), "utf8"), "new\n");
  const update = { type: "update_file", path: "a.txt", diff: "@@ one\n-two\n+2" };
  assert.equal((await session.patchResult(update)).status, "completed");
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n2\n");
  assert.equal((await session.patchResult({ type: "delete_file", path: "b.txt" })).status, "completed");
  assert.equal(existsSync(join(root, "b.txt")), false);
  for (const [operation, output] of [
    [update, /^apply_patch verification failed: Failed to find expected lines in a\.txt:\ntwo/],
    [{ ...create, path: "../c.txt" }, /outside the workspace/],
    [{ ...create, path: "secret/c.txt" }, /is not allowed: the rule/],
    [{ ...update, diff: "*** Move to: c.txt\n@@\n-2\n" }, /the diff moves the file/],
    [{ type: "rename_file", path: "a.txt" }, /no operation of apply_patch: .*rename_file/],
    [{ type: "update_file", path: "a.txt" }, /no operation of apply_patch: .*diff/],
    [undefined, /no operation of apply_patch/],
    [{ type: "delete_file", path: 1n }, /the arguments are not JSON/],
  ]) {
    const result = await session.patchResult(operation);
    assert.equal(result.status, "failed");
    assert.match(result.output, output);
  }
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n2\n");
  const lines = readFileSync(audit, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(new Set(lines.map((line) => line.tool)), new Set(["apply_patch"]));
  assert.equal(lines.length, 11);
});

test("the memory tool keeps its files in a directory of its own", async (t) => {
  const root = workspace(t, {});
  assert.throws(() => new Session({ root, dialect: "memory" }), /needs a directory for its files/);
  const memory = join(root, "memory");
  const session = new Session({ root, dialect: "memory", memory });
  assert.deepEqual(session.toolSchemas("anthropic"), [{ type: "memory_20250818", name: "memory" }]);
  const use = (id, input) => session.toolResult({ type: "tool_use", id, name: "memory", input });
  const path = "/memories/notes.md";
  assert.equal((await use("1", { command: "create", path, file_text: "one\n" })).is_error, false);
  assert.equal(readFileSync(join(memory, "notes.md"), "utf8"), "one\n");
  const seen = await use("2", { command: "view", path });
  assert.equal(seen.content[0].text, `Here's the content of ${path} with line numbers:\n     1\tone\n`);
  assert.equal((await use("3", { command: "view", path: "/etc/passwd" })).is_error, true);
});
