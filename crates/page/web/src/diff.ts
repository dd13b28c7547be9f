// Parses unified diffs, and finds the changed words of lines.

export type RowKind = "context" | "added" | "removed" | "hunk" | "file" | "note";

/** A line of a diff. */
export interface Row {
  kind: RowKind;
  text: string;
  old?: number;
  new?: number;
  /** For a changed line, the line on the other side that it replaced or was replaced by. */
  twin?: Row;
}

/** A row of the side-by-side view: both sides, or one line for both. */
export type Pair = { left?: Row; right?: Row } | { both: Row };

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** The rows of a unified diff. Lines outside hunks are notes; files are named if there are several. */
export function parse(diff: string): Row[] {
  const rows: Row[] = [];
  let [old, fresh] = [0, 0];
  // The number of remaining lines of the hunk, on each side.
  let [oldLeft, newLeft] = [0, 0];
  let files = 0;
  const lines = diff.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (let number = 0; number < lines.length; number++) {
    const line = lines[number] ?? "";
    const inHunk = oldLeft > 0 || newLeft > 0;
    const hunk = HUNK.exec(line);
    if (hunk) {
      [oldLeft, newLeft] = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
      // An empty side counts from the line before.
      [old, fresh] = [Number(hunk[1]) + (oldLeft ? 0 : 1), Number(hunk[3]) + (newLeft ? 0 : 1)];
      rows.push({ kind: "hunk", text: hunk[0] });
    } else if (inHunk && line.startsWith("+")) {
      newLeft--;
      rows.push({ kind: "added", text: line.slice(1), new: fresh++ });
    } else if (inHunk && line.startsWith("-")) {
      oldLeft--;
      rows.push({ kind: "removed", text: line.slice(1), old: old++ });
    } else if (inHunk && line.startsWith(" ")) {
      [oldLeft, newLeft] = [oldLeft - 1, newLeft - 1];
      rows.push({ kind: "context", text: line.slice(1), old: old++, new: fresh++ });
    } else if (!inHunk && line.startsWith("--- ") && lines[number + 1]?.startsWith("+++ ")) {
      files++;
      rows.push({ kind: "file", text: line.slice(4).replace(/^a\//, "") });
      number++;
    } else {
      // If lines are left out, the counts are no longer valid.
      if (/^… .* not shown …$/.test(line)) [oldLeft, newLeft] = [Infinity, Infinity];
      rows.push({ kind: "note", text: line.startsWith("\\ ") ? line.slice(2) : line });
    }
  }
  const named = files > 1 ? rows : rows.filter((row) => row.kind !== "file");
  pairUp(named);
  return named;
}

/** Finds the added line that replaced each removed one, by their order in a run. */
function pairUp(rows: Row[]): void {
  let at = 0;
  while (at < rows.length) {
    const removed = run(rows, at, "removed");
    const added = run(rows, removed, "added");
    for (let nth = 0; nth < Math.min(removed - at, added - removed); nth++) {
      const [one, other] = [rows[at + nth], rows[removed + nth]];
      if (one && other) [one.twin, other.twin] = [other, one];
    }
    at = Math.max(added, at + 1);
  }
}

/** The end of a run of rows of one kind. */
function run(rows: Row[], start: number, kind: RowKind): number {
  let end = start;
  while (rows[end]?.kind === kind) end++;
  return end;
}

/** The rows for the side-by-side view. */
export function sideBySide(rows: Row[]): Pair[] {
  const pairs: Pair[] = [];
  let at = 0;
  while (at < rows.length) {
    const row = rows[at];
    if (!row) break;
    if (row.kind !== "removed" && row.kind !== "added") {
      pairs.push(row.kind === "context" ? { left: row, right: row } : { both: row });
      at++;
      continue;
    }
    const removed = run(rows, at, "removed");
    const added = run(rows, removed, "added");
    const length = Math.max(removed - at, added - removed);
    for (let nth = 0; nth < length; nth++) {
      const pair: { left?: Row; right?: Row } = {};
      const [left, right] = [at + nth < removed ? rows[at + nth] : undefined, removed + nth < added ? rows[removed + nth] : undefined];
      if (left) pair.left = left;
      if (right) pair.right = right;
      pairs.push(pair);
    }
    at = added;
  }
  return pairs;
}

/** A part of a line, and whether it changed. */
export interface Piece {
  text: string;
  changed: boolean;
}

/** Longer lines are not compared word by word. */
const MAX_WORDS = 300;

/** The pieces of a line, compared with the line on the other side. Returns one piece if they have little in common. */
export function pieces(line: string, twin: string): Piece[] {
  const whole = [{ text: line, changed: false }];
  const [own, other] = [words(line), words(twin)];
  if (own.length > MAX_WORDS || other.length > MAX_WORDS) return whole;
  const common = commonWords(own, other);
  const same = own.filter((_, nth) => common.has(nth)).join("").trim().length;
  if (same * 3 < Math.min(line.trim().length, twin.trim().length)) return whole;
  const found: Piece[] = [];
  for (const [nth, text] of own.entries()) {
    const changed = !common.has(nth);
    const last = found.at(-1);
    if (last && last.changed === changed) last.text += text;
    else found.push({ text, changed });
  }
  return found;
}

function words(line: string): string[] {
  return line.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** The indexes of the words in `own` that are in the longest common subsequence. */
function commonWords(own: string[], other: string[]): Set<number> {
  const width = other.length + 1;
  const lengths = new Uint16Array((own.length + 1) * width);
  for (let one = own.length - 1; one >= 0; one--) {
    for (let two = other.length - 1; two >= 0; two--) {
      const skip = Math.max(lengths[(one + 1) * width + two] ?? 0, lengths[one * width + two + 1] ?? 0);
      const take = own[one] === other[two] ? 1 + (lengths[(one + 1) * width + two + 1] ?? 0) : 0;
      lengths[one * width + two] = Math.max(skip, take);
    }
  }
  const common = new Set<number>();
  for (let one = 0, two = 0; one < own.length && two < other.length; ) {
    if (own[one] === other[two]) {
      common.add(one++);
      two++;
    } else if ((lengths[(one + 1) * width + two] ?? 0) >= (lengths[one * width + two + 1] ?? 0)) one++;
    else two++;
  }
  return common;
}
