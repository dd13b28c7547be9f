/** The calls that each signal cancels: one listener for all calls of a signal. */
const watched = new WeakMap<AbortSignal, { calls: Set<() => void>; listener: () => void }>();

/** Calls `cancel` when the signal aborts. Returns a function that stops watching. */
export function watch(signal: AbortSignal, cancel: () => void): () => void {
  if (signal.aborted) {
    cancel();
    return () => {};
  }
  let known = watched.get(signal);
  if (known === undefined) {
    const calls = new Set<() => void>();
    known = { calls, listener: () => calls.forEach((end) => end()) };
    signal.addEventListener("abort", known.listener, { once: true });
    watched.set(signal, known);
  }
  const { calls, listener } = known;
  calls.add(cancel);
  return () => {
    calls.delete(cancel);
    if (calls.size === 0 && watched.get(signal)?.calls === calls) {
      signal.removeEventListener("abort", listener);
      watched.delete(signal);
    }
  };
}

/** Whether a value has the methods of an `AbortSignal`. */
export function isSignal(value: unknown): value is AbortSignal {
  const signal = value as Partial<AbortSignal> | null;
  return (
    typeof signal === "object" &&
    typeof signal?.aborted === "boolean" &&
    typeof signal.addEventListener === "function" &&
    typeof signal.removeEventListener === "function"
  );
}
