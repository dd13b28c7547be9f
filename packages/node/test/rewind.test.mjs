// Checkpoints and rewind.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PinfoldError, Session } from "pinfold";
import { workspace } from "./workspace.mjs";

const opened = (t, root, more = {}) => new Session({ root, dialect: "dotted", journal: workspace(t), ...more });

test("a turn is undone, whatever was changed in it", async (t) => {
  const root = workspace(t, { "a.txt": "one\n", "dir/d.txt": "four\n" });
  writeFileSync(join(root, "b.bin"), Buffer.from([0, 1, 255]));
  const session = opened(t, root);
  await session.checkpoint("start");
  const calls = [
    ["file.patch", { path: "a.txt", patches: [{ find: "one", replace: "two" }] }],
    ["file.delete", { path: "b.bin" }],
    ["file.move", { source: "dir", destination: "moved" }],
    ["file.write", { path: "new/n.txt", content: "new\n" }],
  ];
  for (const [tool, args] of calls) {
    assert.equal((await session.call(tool, args)).success, true);
  }
  const preview = await session.rewind("start", { dryRun: true });
  assert.deepEqual([preview.done, preview.dryRun, preview.changes], [false, true, 4]);
  assert.ok(!existsSync(join(root, "b.bin")));
  const restored = preview.files.find((file) => file.path === join(root, "a.txt"));
  assert.deepEqual(restored, { path: join(root, "a.txt"), what: "restored", linesAdded: 1, linesRemoved: 1 });
  const moved = preview.files.find((file) => file.what === "moved back");
  assert.equal(moved.backTo, join(root, "dir"));
  const done = await session.rewind("start");
  assert.equal(done.done, true);
  assert.match(done.id, /^[0-9a-z]{10}$/);
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n");
  assert.deepEqual([...readFileSync(join(root, "b.bin"))], [0, 1, 255]);
  assert.ok(existsSync(join(root, "dir/d.txt")) && !existsSync(join(root, "new")));
});

test("what somebody else changed is named, and then nothing is done", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const session = opened(t, root);
  const checkpoint = await session.checkpoint();
  await session.call("file.write", { path: "a.txt", content: "two\n" });
  await session.call("file.write", { path: "b.txt", content: "two\n" });
  writeFileSync(join(root, "a.txt"), "theirs\n");
  const refused = await session.rewind(checkpoint);
  assert.equal(refused.done, false);
  assert.deepEqual(refused.conflicts, [{ path: join(root, "a.txt"), why: "its content has changed since" }]);
  assert.ok(existsSync(join(root, "b.txt")));
  const rest = await session.rewind(checkpoint, { leaveOutConflicts: true });
  assert.equal(rest.done, true);
  assert.ok(!existsSync(join(root, "b.txt")));
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "theirs\n");
});

test("only the session's own changes are undone, unless `everybody` is set", async (t) => {
  const root = workspace(t);
  const journal = join(workspace(t), "journal");
  mkdirSync(journal);
  const [mine, theirs] = [0, 1].map(() => new Session({ root, dialect: "dotted", journal }));
  const checkpoint = await mine.checkpoint();
  await mine.call("file.write", { path: "mine.txt", content: "" });
  await theirs.call("file.write", { path: "theirs.txt", content: "" });
  await mine.rewind(checkpoint);
  assert.deepEqual(["mine.txt", "theirs.txt"].map((name) => existsSync(join(root, name))), [false, true]);
  await mine.rewind(checkpoint, { everybody: true });
  assert.ok(!existsSync(join(root, "theirs.txt")));
});

test("a rewind that cannot be planned rejects, and no model can name it", async (t) => {
  const root = workspace(t);
  const session = opened(t, root);
  await assert.rejects(session.rewind("none"), (error) => error instanceof PinfoldError && /none/.test(error.message));
  await assert.rejects(new Session({ root }).checkpoint(), /there is no journal/);
  await assert.rejects(session.checkpoint("x".repeat(201)), { code: "invalid_argument" });
  for (const name of ["rewind", "checkpoint"]) {
    assert.equal((await session.call(name, { to: "none" })).metadata.code, "unknown_tool");
  }
});

test("the user is asked once about all that is undone", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const asked = [];
  const canUseTool = (tool, args, question) => {
    asked.push([tool, question.diff]);
    return tool !== "rewind";
  };
  const session = opened(t, root, { permissions: { mode: "default" }, canUseTool });
  await session.checkpoint("start");
  await session.call("file.write", { path: "a.txt", content: "two\n" });
  await session.call("file.write", { path: "b.txt", content: "new\n" });
  asked.length = 0;
  await assert.rejects(session.rewind("start"), { code: "permission_denied" });
  assert.equal(asked.length, 1);
  const [[tool, diff]] = asked;
  assert.equal(tool, "rewind");
  assert.match(diff, /\+one/);
  assert.match(diff, /b\.txt: deletes a file of 4 bytes/);
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "two\n");
});
