import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Session } from "pinfold";
import { workspace } from "./workspace.mjs";

/** A session in which every change needs approval, and a call that makes one. */
function asking(t, options = {}) {
  const root = workspace(t);
  const session = new Session({ root, permissions: { mode: "default" }, ...options });
  const file = join(root, "new.txt");
  const args = { file_path: file, content: "x\n" };
  const write = (context) => session.call("Write", args, context);
  return { session, file, args, write };
}

const neverAsked = () => assert.fail("nobody was to be asked");

test("a yes is enough, and the question says what it is about", async (t) => {
  const { file, args, write } = asking(t);
  const asked = [];
  const result = await write({
    canUseToolCallback: async (...given) => {
      asked.push(given);
      return true;
    },
  });
  assert.equal(result.success, true, result.error);
  assert.equal(readFileSync(file, "utf8"), "x\n");
  assert.equal(asked.length, 1);
  const [name, given, question] = asked[0];
  assert.equal(name, "Write");
  assert.deepEqual(given, args);
  assert.equal(question.operation, "Write");
  assert.equal(question.path, file);
  assert.match(question.question, /Allow changing .*new\.txt\?/);
  assert.match(question.diff, /\+x/);
});

test("whatever is no clear yes is a no", async (t) => {
  const { file, write } = asking(t);
  const circular = { behavior: "allow" };
  circular.self = circular;
  for (const answer of [false, undefined, null, "yes", 1, {}, { behavior: "deny" }, circular]) {
    const result = await write({ canUseToolCallback: () => answer });
    assert.equal(result.metadata.code, "permission_denied");
    assert.ok(!existsSync(file));
  }
});

test("callbacks that throw or reject are a no, with their words", async (t) => {
  const { file, write } = asking(t);
  const throwing = [
    () => { throw new Error("the dialog is broken"); },
    async () => { throw new Error("the dialog is broken"); },
    () => Promise.reject("the dialog is broken"),
  ];
  for (const canUseToolCallback of throwing) {
    const result = await write({ canUseToolCallback });
    assert.equal(result.metadata.code, "permission_denied");
    assert.match(result.error, /the user did not answer: the approval callback failed: the dialog is broken/);
    assert.ok(!existsSync(file));
  }
});

test("whatever is thrown is a no, and the call ends", async (t) => {
  const { file, write } = asking(t);
  const wordless = () => { throw Object.create(null); };
  const odd = Object.assign(new Error(), { message: Symbol("x") });
  const callbacks = [wordless, () => { throw odd; }, () => ({ toJSON: wordless })];
  for (const canUseToolCallback of callbacks) {
    const result = await write({ canUseToolCallback });
    assert.equal(result.metadata.code, "permission_denied");
    assert.ok(!existsSync(file));
  }
});

test("what is decided about is what is done", async (t) => {
  const { session, file, args } = asking(t);
  const harmless = (_, shown) => shown.content === "harmless";
  const waiting = session.call("Write", args, { canUseToolCallback: harmless });
  args.content = "harmless";
  assert.equal((await waiting).success, false);
  let times = 0;
  const sly = { file_path: file, toJSON: () => ({ file_path: file, content: times++ ? "harmless" : "x" }) };
  assert.equal((await session.call("Write", sly, { canUseToolCallback: harmless })).success, false);
  const changing = (_, shown) => { shown.file_path = "/elsewhere"; return true; };
  assert.equal((await session.call("Write", args, { canUseToolCallback: changing })).filePath, file);
  assert.equal(readFileSync(file, "utf8"), "harmless");
});

test("a no can have words for the agent", async (t) => {
  const { write } = asking(t, {
    canUseTool: () => ({ behavior: "deny", message: "not on a Monday" }),
  });
  assert.match((await write()).error, /not on a Monday/);
});

test("without anybody to ask the answer is no, and names the rule", async (t) => {
  const { write } = asking(t);
  const result = await write();
  assert.equal(result.metadata.code, "permission_denied");
  assert.match(result.error, /Write\(\/new\.txt\)/);
});

test("a yes can be remembered", async (t) => {
  let asked = 0;
  const { session, file, write } = asking(t, {
    canUseTool: () => {
      asked += 1;
      return { behavior: "allow", remember: true };
    },
  });
  assert.equal((await write()).success, true);
  const edit = { file_path: file, old_string: "x", new_string: "y" };
  assert.equal((await session.call("Edit", edit)).success, true);
  assert.equal(asked, 1);
});

test("the call's own callback comes before the session's, and a manager before both", async (t) => {
  const { args, write } = asking(t, { canUseTool: neverAsked });
  assert.equal((await write({ canUseToolCallback: () => false })).success, false);
  const requests = [];
  const permissionManager = {
    mine: "it is called on the object",
    checkPermission(request) {
      requests.push([this.mine, request]);
      return { behavior: "allow" };
    },
  };
  const context = { permissionManager, canUseToolCallback: neverAsked, permissionMode: "default" };
  assert.equal((await write(context)).success, true);
  const [[mine, request]] = requests;
  assert.equal(mine, "it is called on the object");
  assert.equal(request.toolName, "Write");
  assert.deepEqual(request.toolInput, args);
  assert.equal(request.permissionMode, "default");
  assert.equal(request.canUseToolCallback, neverAsked);
});

test("the mode of a call is its own", async (t) => {
  const { file, write } = asking(t, { canUseTool: neverAsked });
  const plan = await write({ permissionMode: "plan" });
  assert.equal(plan.metadata.code, "permission_denied");
  assert.ok(!existsSync(file));
  const unknown = await write({ permissionMode: "careful" });
  assert.equal(unknown.metadata.code, "invalid_argument");
  assert.match(unknown.error, /no permission mode `careful`; the modes are default, /);
  assert.ok(!existsSync(file));
  assert.equal((await write({ permissionMode: "acceptEdits" })).success, true);
});

test("a call that was ended before it began does nothing", async (t) => {
  const { file, write } = asking(t);
  for (const name of ["abortSignal", "signal"]) {
    const result = await write({ [name]: AbortSignal.abort(), permissionMode: "acceptEdits" });
    assert.equal(result.metadata.code, "cancelled");
    assert.ok(!existsSync(file));
  }
});

test("either signal ends a call, and what is none is refused", async (t) => {
  const { file, write } = asking(t);
  const never = new AbortController().signal;
  const free = { permissionMode: "acceptEdits" };
  const both = await write({ ...free, abortSignal: never, signal: AbortSignal.abort() });
  assert.equal(both.metadata.code, "cancelled");
  for (const context of [{ signal: { aborted: true } }, { workdir: 5n }, { workdir: 5 }, { dry_run: true }]) {
    const result = await write({ ...free, ...context });
    assert.equal(result.metadata.code, "invalid_argument");
    assert.match(result.error, /context/);
  }
  assert.ok(!existsSync(file));
});

test("one signal can end any number of calls, without a word on the console", async (t) => {
  const { session } = asking(t);
  const warnings = [];
  const listen = (warning) => warnings.push(warning.name);
  process.on("warning", listen);
  const controller = new AbortController();
  let asked = 0;
  const context = {
    signal: controller.signal,
    canUseToolCallback: () => {
      asked += 1;
      if (asked === 50) controller.abort();
      return new Promise(() => {});
    },
  };
  const root = workspace(t);
  const other = new Session({ root, permissions: { mode: "default" } });
  const calls = Array.from({ length: 50 }, (_, n) =>
    other.call("Write", { file_path: join(root, `${n}`), content: "" }, context));
  for (const result of await Promise.all(calls)) {
    assert.equal(result.metadata.code, "cancelled");
  }
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", listen);
  assert.deepEqual(warnings, []);
  assert.equal((await session.call(undefined, {})).metadata.code, "unknown_tool");
});

test("a call that is ended while somebody thinks ends at once", async (t) => {
  const { file, write } = asking(t);
  const controller = new AbortController();
  const result = await write({
    abortSignal: controller.signal,
    canUseToolCallback: () => {
      controller.abort();
      return new Promise(() => {});
    },
  });
  assert.equal(result.metadata.code, "cancelled");
  assert.ok(!existsSync(file));
});

test("others go on while somebody thinks", async (t) => {
  const { session, file, write } = asking(t);
  let decide;
  let asked;
  const question = new Promise((resolve) => { asked = resolve; });
  const waiting = write({
    canUseToolCallback: () => new Promise((resolve) => { decide = resolve; asked(); }),
  });
  await question;
  const listed = await session.call("LS", { path: join(file, "..") });
  assert.equal(listed.success, true);
  decide(true);
  assert.equal((await waiting).success, true);
});
