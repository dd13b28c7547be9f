// The examples in the documentation print what it shows.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { workspace } from "./workspace.mjs";

const run = promisify(execFile);
const home = join(import.meta.dirname, "..");

const classic = ['Grep "Helo"', "Read greeting.txt", "Edit greeting.txt"];
const editor = ["view .", "view greeting.txt", "str_replace greeting.txt"].map(
  (params) => `str_replace_based_edit_tool ${params}`,
);
const examples = { "ai-sdk": classic, anthropic: classic, "anthropic-editor": editor, gemini: classic, openai: classic };
for (const [example, printed] of Object.entries(examples)) {
  test(`the example ${example} mends the file`, async () => {
    const environment = { ...process.env };
    for (const name of ["OPENAI", "ANTHROPIC", "GEMINI"]) delete environment[`${name}_API_KEY`];
    const file = join(home, "examples", `${example}.mjs`);
    const { stdout } = await run(process.execPath, [file], { env: environment });
    assert.deepEqual(stdout.split("\n").slice(0, 3), printed);
    assert.match(stdout, /\nHello, world!\n/);
  });
}

test("the example rewind takes the turn back", async () => {
  const { stdout } = await run(process.execPath, [join(home, "examples", "rewind.mjs")]);
  const expected = [
    "Read greeting.txt ",
    "Edit greeting.txt ",
    "Move greeting.txt → old/greeting.txt ",
    "Write notes.txt ",
    "moved: true",
    "would be created again greeting.txt +1 -0",
    "would be removed notes.txt +0 -2",
    "would be removed old/greeting.txt +0 -1",
    "true 3",
    "Helo, world!",
  ];
  assert.deepEqual(stdout.trimEnd().split("\n"), expected);
});

test("what the README shows works when it is copied", async (t) => {
  const readme = readFileSync(join(home, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/```js\n(.*?)```(?:[^`]*```text\n(.*?)```)?/gs)];
  assert.ok(blocks.length >= 3);
  for (const [, code, output] of blocks) {
    const directory = workspace(t);
    mkdirSync(join(directory, "node_modules"));
    symlinkSync(home, join(directory, "node_modules", "pinfold"));
    writeFileSync(join(directory, "agent.mjs"), code);
    const env = { ...process.env, XDG_STATE_HOME: workspace(t) };
    const { stdout } = await run(process.execPath, ["agent.mjs"], { cwd: directory, env });
    if (output !== undefined) {
      assert.equal(stdout.replaceAll(directory, "/home/me/agent"), output);
    }
  }
});
