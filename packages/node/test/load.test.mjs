import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, readdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { Session } from "pinfold";
import { workspace } from "./workspace.mjs";

const run = promisify(execFile);

test("a thousand calls at once are all answered", async (t) => {
  const files = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`${n}.txt`, `number ${n}\n`]));
  const root = workspace(t, files);
  const session = new Session({ root });
  const calls = Object.keys(files).map((name) => session.call("Read", { file_path: join(root, name) }));
  const results = await Promise.all(calls);
  results.forEach((result, n) => assert.equal(result.content, `     1\tnumber ${n}\n`));
});

test("a hundred edits of one file at once are all in it", async (t) => {
  const root = workspace(t, { "a.txt": Array.from({ length: 100 }, (_, n) => `<${n}>\n`).join("") });
  const file_path = join(root, "a.txt");
  const session = new Session({ root, durability: "none" });
  await session.call("Read", { file_path });
  const edits = Array.from({ length: 100 }, (_, n) => {
    const edit = { file_path, old_string: `<${n}>`, new_string: `[${n}]` };
    return session.call("Edit", edit);
  });
  for (const result of await Promise.all(edits)) {
    assert.equal(result.success, true, result.error);
  }
  const expected = Array.from({ length: 100 }, (_, n) => `[${n}]\n`).join("");
  assert.equal(readFileSync(file_path, "utf8"), expected);
});

test("a thousand questions at once wait for nobody but their own answer", async (t) => {
  const root = workspace(t);
  const waiting = [];
  const session = new Session({
    root,
    durability: "none",
    permissions: { mode: "default" },
    canUseTool: (_, args) => new Promise((resolve) => {
      waiting.push(() => resolve(args.content === "even"));
      // Answered when all have been asked, the last first.
      if (waiting.length === 1000) waiting.reverse().forEach((answer) => answer());
    }),
  });
  const calls = Array.from({ length: 1000 }, (_, n) => {
    const content = n % 2 === 0 ? "even" : "odd";
    return session.call("Write", { file_path: join(root, `${n}.txt`), content });
  });
  (await Promise.all(calls)).forEach((result, n) => assert.equal(result.success, n % 2 === 0));
});

test("a program ends when its calls have", async (t) => {
  const root = workspace(t, { "a.txt": "one\n" });
  const program = `
    import { createTools } from "pinfold";
    const [read] = createTools({ root: ${JSON.stringify(root)} });
    console.log((await read.execute({ file_path: ${JSON.stringify(join(root, "a.txt"))} })).shortResult);
  `;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], {
    cwd: import.meta.dirname,
  });
  assert.equal(stdout, "Read 1 line\n");
});

test("workers can be ended while questions are open, and leave no threads", async (t) => {
  const root = workspace(t, { "a.txt": "x" });
  const home = join(import.meta.dirname, "..");
  const program = `
    const { parentPort } = require("node:worker_threads");
    const { Session } = require(${JSON.stringify(home)});
    const root = ${JSON.stringify(root)};
    const session = new Session({ root, permissions: { mode: "default" } });
    let asked = 0;
    const canUseToolCallback = () => {
      asked += 1;
      if (asked === 40) parentPort.postMessage("asked");
      return new Promise(() => {});
    };
    for (let n = 0; n < 60; n += 1) {
      session.call("Write", { file_path: root + "/" + n, content: "" }, { canUseToolCallback });
      session.call("Read", { file_path: root + "/a.txt" });
    }
  `;
  for (let n = 0; n < 20; n += 1) {
    const worker = new Worker(program, { eval: true });
    await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    await worker.terminate();
  }
  // The threads of those questions end: without that, there would be 800 of them for ever.
  const threads = () => Number(readFileSync("/proc/self/status", "utf8").match(/^Threads:\s*(\d+)/m)[1]);
  for (let n = 0; threads() > 100 && n < 3000; n += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(threads() <= 100, `${threads()} threads`);
  assert.deepEqual(readdirSync(root), ["a.txt"]);
});

test("a call that is ended before its turn need not wait for it", async (t) => {
  const root = workspace(t);
  // Text, and then a hole that takes hours to read: a call for a line behind it ends when it is aborted, and not before.
  const file_path = join(root, "endless.txt");
  writeFileSync(file_path, "x\n".repeat(100_000));
  truncateSync(file_path, 2 ** 43);
  const session = new Session({ root, deadlineSeconds: 3600 });
  const [first, second] = [new AbortController(), new AbortController()];
  // More than the pool has places.
  const read = (signal) => session.call("Read", { file_path, offset: 200_000 }, { signal });
  const running = Array.from({ length: 100 }, () => read(first.signal));
  const waiting = read(second.signal);
  second.abort();
  const early = await Promise.race([waiting, ...running]);
  assert.equal(early, await waiting);
  assert.equal(early.metadata.code, "cancelled");
  first.abort();
  for (const result of await Promise.all(running)) assert.equal(result.metadata.code, "cancelled");
});

test("a worker can be ended while its calls are under way", async (t) => {
  const root = workspace(t);
  for (let n = 0; n < 300; n += 1) writeFileSync(join(root, `${n}.txt`), "needle\n".repeat(1000));
  const home = join(import.meta.dirname, "..");
  const program = `
    const { parentPort } = require("node:worker_threads");
    const { Session } = require(${JSON.stringify(home)});
    const session = new Session({ root: ${JSON.stringify(root)} });
    for (let n = 0; n < 50; n += 1) session.call("Grep", { pattern: "needle", output_mode: "content" });
    parentPort.postMessage("begun");
  `;
  const worker = new Worker(program, { eval: true });
  await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  await worker.terminate();
  // The module is still good for this thread.
  const result = await new Session({ root }).call("Glob", { pattern: "*.txt" });
  assert.equal(result.metadata.count, 300);
});
