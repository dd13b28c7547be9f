// Text for the user's eyes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { belowRoot, count, size, splitName, visible } from "./built/text.js";

test("what cannot be seen is escaped", () => {
  for (const [text, shown] of [
    ["plain é 日本 😀", "plain é 日本 😀"],
    ["a\u202eb", "a\\u{202e}b"],
    ["\u001b[31m", "\\x1b[31m"],
    ["a\nb\tc", "a\\x0ab\\x09c"],
    ["\u200b\ufeff", "\\u{200b}\\u{feff}"],
    ["no\u00a0break", "no\\xa0break"],
    ["\u3164", "\\u{3164}"],
    ["\ud800", "\\u{d800}"],
  ]) {
    assert.equal(visible(text), shown);
  }
});

test("a path is shown below the innermost root", () => {
  assert.deepEqual(belowRoot("/a/b/c", ["/a", "/a/b"]), { root: "/a/b", rest: "c" });
  assert.deepEqual(belowRoot("/ab/c", ["/a"]), { root: "", rest: "/ab/c" });
  assert.deepEqual(belowRoot("/x", ["/"]), { root: "/", rest: "x" });
  assert.deepEqual(splitName("src/a.rs"), ["src/", "a.rs"]);
});

test("numbers have the right noun", () => {
  assert.deepEqual([count(1, "line"), count(25000, "line"), size(12), size(2048)], ["1 line", "25,000 lines", "12 bytes", "2.0 KB"]);
});
