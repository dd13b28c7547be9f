// Undoes what an agent did in a turn that the user does not want. The model follows a script, so this runs without a key.
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { Session } from "pinfold";
import { file, root, unwanted } from "./scripted.mjs";

// The journal has what each change displaced. Without a directory, `true` keeps it in the user's state directory.
const session = new Session({ root, journal: `${root}-journal` });

const checkpoint = await session.checkpoint("turn 1");
for (const { tool, args } of unwanted) {
  const { success, error } = await session.call(tool, args);
  console.log(tool, session.formatCompactParams(tool, args), success ? "" : error);
}
console.log("moved:", !existsSync(file));

const preview = await session.rewind(checkpoint, { dryRun: true });
for (const { what, path, linesAdded, linesRemoved } of preview.files) {
  const lines = linesAdded === undefined ? "" : `+${linesAdded} -${linesRemoved}`;
  console.log("would be", what, relative(root, path), lines);
}
const { done, changes } = await session.rewind(checkpoint);
console.log(done, changes);
console.log(readFileSync(file, "utf8"));
