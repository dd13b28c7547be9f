import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { workspace } from "./workspace.mjs";

const home = fileURLToPath(new URL("..", import.meta.url));
// No settings but those of the test.
const env = { ...process.env, XDG_CONFIG_HOME: "/nowhere", XDG_STATE_HOME: "/nowhere" };

/** The program as it is after the package was packed and installed: the one that `npx` runs. */
function installed(t) {
  const place = workspace(t, { "package.json": "{}" });
  const npm = (...args) => execFileSync("npm", args, { cwd: place, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  const [{ filename }] = JSON.parse(npm("pack", "--json", home));
  npm("install", "--no-audit", "--no-fund", "--offline", `./${filename}`);
  return join(place, "node_modules/.bin/pinfold");
}

test("the package has the command line, and clients are served by it", async (t) => {
  const program = installed(t);
  const root = workspace(t, { "a.txt": "one\ntwo\n" });
  const run = (...args) => spawnSync(program, args, { cwd: root, encoding: "utf8", env });
  const read = run("call", "--no-journal", "read_file", '{"path": "a.txt"}');
  assert.equal(read.status, 0, read.stderr);
  assert.equal(JSON.parse(read.stdout).content, "one\ntwo\n");
  assert.equal(run("call", "--no-journal", "read_file", '{"path": "none"}').status, 1);
  assert.equal(run("call", "--no-journal", "read_file", "no JSON").status, 2);

  const serve = async () => {
    const args = ["serve", "--no-journal", "--root", root];
    const server = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], env });
    t.after(() => server.kill("SIGKILL"));
    const answers = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const ask = async (id, method, params) => {
      send({ id, method, params });
      return JSON.parse((await answers.next()).value).result;
    };
    const clientInfo = { name: "test", version: "1" };
    const hello = await ask(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    assert.equal(hello.serverInfo.name, "pinfold");
    send({ method: "notifications/initialized" });
    return { server, ask };
  };
  const { server, ask } = await serve();
  const call = { name: "Read", arguments: { file_path: join(root, "a.txt") } };
  assert.equal((await ask(2, "tools/call", call)).content[0].text, "     1\tone\n     2\ttwo\n");
  // It ends at SIGTERM,
  server.kill("SIGTERM");
  assert.deepEqual(await once(server, "exit"), [0, null]);
  // and says so if the program itself is killed.
  const { server: other } = await serve();
  const children = readFileSync(`/proc/${other.pid}/task/${other.pid}/children`, "utf8").trim().split(" ");
  assert.equal(children.length, 1);
  process.kill(Number(children[0]), "SIGKILL");
  assert.deepEqual(await once(other, "exit"), [128 + 9, null]);
});
