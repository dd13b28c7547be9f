// Text for the user.

// Control, format, private, unassigned and separator characters, and blank letters that look like nothing: whatever
// cannot be seen, or changes how other text looks.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]|(?! )\p{Zs}/gu;

/** A name or a line with invisible characters escaped. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (hidden) => {
    const code = hidden.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    return code < 0x100 ? `\\x${digits.padStart(2, "0")}` : `\\u{${digits}}`;
  });
}

/** A path below a root, and that root; or the whole path, if it is below none. */
export function belowRoot(path: string, roots: readonly string[] = []): { root: string; rest: string } {
  const above = roots.filter((root) => path.startsWith(root.endsWith("/") ? root : `${root}/`));
  const root = above.sort((one, other) => other.length - one.length)[0];
  if (root === undefined) return { root: "", rest: path };
  return { root, rest: path.slice(root.length).replace(/^\/+/, "") };
}

/** The directory of a path, with its last slash, and the name. */
export function splitName(path: string): [directory: string, name: string] {
  const slash = path.lastIndexOf("/") + 1;
  return [path.slice(0, slash), path.slice(slash)];
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

/** The time of day. */
export function timeOf(time: number | string): string {
  return clock.format(new Date(time));
}

/** The day. */
export function dayOf(time: number | string): string {
  return day.format(new Date(time));
}

/** A number with the right form of its noun. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function duration(milliseconds: number): string {
  return milliseconds < 1000 ? `${milliseconds} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}

export function size(bytes: number): string {
  if (bytes < 1024) return count(bytes, "byte");
  const units = ["KB", "MB", "GB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(1)} ${units[unit]}`;
}
