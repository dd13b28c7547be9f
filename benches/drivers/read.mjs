// Reads a file as often as each line of input says, in the way that the second argument names.
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { dirname } from "node:path";
import { Session } from "../../packages/node/dist/index.mjs";

const [file, way] = process.argv.slice(2);
const session = new Session({ root: dirname(file) });
const ways = {
  call: async () => (await session.call("Read", { file_path: file })).success,
  plain: async () => (await readFile(file, "utf8")).length > 0,
};
for await (const line of createInterface({ input: process.stdin })) {
  for (let left = Number(line); left > 0; left -= 1) {
    if (!(await ways[way]())) throw new Error("it was not read");
  }
  console.log("done");
}
