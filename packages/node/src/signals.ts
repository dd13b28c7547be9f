/** What a signal ends. One listener does for all calls of a signal. */
const watched = new WeakMap<AbortSignal, { calls: Set<() => void>; listener: () => void }>();

/** Ends a call when a signal says so. What comes back stops watching. */
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

/** Whether something can be watched. */
export function isSignal(value: unknown): value is AbortSignal {
  const signal = value as Partial<AbortSignal> | null;
  return (
    typeof signal === "object" &&
    typeof signal?.aborted === "boolean" &&
    typeof signal.addEventListener === "function" &&
    typeof signal.removeEventListener === "function"
  );
}
