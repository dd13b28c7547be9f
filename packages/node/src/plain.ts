/** A copy of what is plain data; what JSON would leave out or change without a word is refused by its name. */
export function plain(value: unknown, name: string): unknown {
  if (value === null || value === undefined || typeof value === "string" || typeof value === "boolean") {
    return value;
  }
  if (typeof value === "number" && Number.isFinite(value)) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map((item, number) => plain(item, `${name}[${number}]`));
  }
  if (typeof value === "object") {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) {
      const symbols = Object.getOwnPropertySymbols(value);
      if (symbols.length === 0) {
        const fields = Object.entries(value);
        return Object.fromEntries(fields.map(([key, field]) => [key, plain(field, join(name, key))]));
      }
    }
    throw new TypeError(`${said(name)} must be a plain object`);
  }
  throw new TypeError(`${said(name)} cannot be a ${typeof value}${typeof value === "number" ? ` (${value})` : ""}`);
}

function join(name: string, key: string): string {
  return name === "" ? key : `${name}.${key}`;
}

function said(name: string): string {
  return name === "" ? "the options" : `the option \`${name}\``;
}

/** What an error says, whatever was thrown. */
export function wordsOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "it threw something that has no words";
  }
}

/** A value as JSON, or why it is none. What is not given is an empty object. */
export function written(value: unknown): { text: string; problem?: string } {
  try {
    return { text: JSON.stringify(value ?? {}) ?? "null" };
  } catch (error) {
    return { text: "null", problem: wordsOf(error) };
  }
}
