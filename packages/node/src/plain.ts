/** Copies plain data. Throws a `TypeError` that names the option for values that JSON would drop or change. */
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
    throw new TypeError(`${label(name)} must be a plain object`);
  }
  throw new TypeError(`${label(name)} cannot be a ${typeof value}${typeof value === "number" ? ` (${value})` : ""}`);
}

function join(name: string, key: string): string {
  return name === "" ? key : `${name}.${key}`;
}

function label(name: string): string {
  return name === "" ? "the options" : `the option \`${name}\``;
}

/** The message of an error, or of any other value that was thrown. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "it threw a value that cannot be printed";
  }
}

/** A value as JSON text, or why it has none. `undefined` and `null` become an empty object. */
export function stringify(value: unknown): { text: string; problem?: string } {
  try {
    return { text: JSON.stringify(value ?? {}) ?? "null" };
  } catch (error) {
    return { text: "null", problem: messageOf(error) };
  }
}
