// Diffs: which line is which, and what changed inside lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, pieces, sideBySide } from "./built/diff.js";

const DIFF = `--- a/x
+++ b/x
@@ -1,3 +1,4 @@
 one
-two
+2
+two and a half
 three
@@ -9 +10,0 @@
-nine
\\ No newline at end of file
`;

test("lines have their numbers on both sides", () => {
  const rows = parse(DIFF).map(({ kind, text, old, new: fresh }) => [kind, text, old, fresh]);
  assert.deepEqual(rows, [
    ["hunk", "@@ -1,3 +1,4 @@", undefined, undefined],
    ["context", "one", 1, 1],
    ["removed", "two", 2, undefined],
    ["added", "2", undefined, 2],
    ["added", "two and a half", undefined, 3],
    ["context", "three", 3, 4],
    ["hunk", "@@ -9 +10,0 @@", undefined, undefined],
    ["removed", "nine", 9, undefined],
    ["note", "No newline at end of file", undefined, undefined],
  ]);
});

test("side by side, a line stands beside the one that replaced it", () => {
  const pairs = sideBySide(parse(DIFF)).map((pair) => ("both" in pair ? pair.both.kind : [pair.left?.text, pair.right?.text]));
  assert.deepEqual(pairs, ["hunk", ["one", "one"], ["two", "2"], [undefined, "two and a half"], ["three", "three"], "hunk", ["nine", undefined], "note"]);
});

test("lines that look like the head of a file are lines inside a hunk", () => {
  const rows = parse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a/y\n+++ b/y\n");
  assert.deepEqual(rows.map(({ kind, text }) => [kind, text]), [["hunk", "@@ -1 +1 @@"], ["removed", "-- a/y"], ["added", "++ b/y"]]);
});

test("each of several files is named", () => {
  const one = (name) => `--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-a\n+b\n`;
  assert.deepEqual(parse(one("x")).map(({ kind }) => kind), ["hunk", "removed", "added"]);
  const rows = parse(one("x") + one("y")).map(({ kind, text }) => `${kind} ${text}`);
  assert.deepEqual(rows, ["file x", "hunk @@ -1 +1 @@", "removed a", "added b", "file y", "hunk @@ -1 +1 @@", "removed a", "added b"]);
});

test("what is not shown of a long diff is a note, and the lines after it are still lines", () => {
  const rows = parse("deletes nothing\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n… 12 lines not shown …\n+b");
  assert.deepEqual(rows.map(({ kind }) => kind), ["note", "hunk", "removed", "note", "added"]);
});

test("changed words are marked, unless lines have little in common", () => {
  assert.deepEqual(pieces("let x = one(1);", "let x = two(1);"), [
    { text: "let x = ", changed: false },
    { text: "one", changed: true },
    { text: "(1);", changed: false },
  ]);
  assert.deepEqual(pieces("completely other", "nothing alike here"), [{ text: "completely other", changed: false }]);
  const long = "word ".repeat(1000);
  assert.equal(pieces(long, `${long}x`).length, 1);
});

test("the pieces of a line are the line", () => {
  let seed = 7;
  const next = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  const line = () => Array.from({ length: next(12) }, () => ["a", "b ", "é", "(", "𝒳", "\t"][next(6)]).join("");
  for (let round = 0; round < 2000; round++) {
    const [one, other] = [line(), line()];
    assert.equal(pieces(one, other).map(({ text }) => text).join(""), one);
  }
});
