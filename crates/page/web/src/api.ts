// Requests to the server of the page.

import type { AnswerKind, Change, Diff, Listed, Query, UndoOutcome, UndoSubject, VersionName } from "./types.ts";

async function answer<T>(response: Promise<Response>): Promise<T> {
  let got: Response;
  try {
    got = await response;
  } catch {
    throw new Error("`pinfold page` does not answer. If it was stopped, run it again.");
  }
  if (got.status === 401) throw new Error("This page is of an earlier run. Run `pinfold page` again.");
  const body = (await got.json()) as T & { error?: string };
  if (!got.ok) throw new Error(body.error ?? `it failed (${got.status})`);
  return body;
}

function get<T>(name: string, query: unknown): Promise<T> {
  return answer(fetch(`api/${name}?${encodeURIComponent(JSON.stringify(query))}`));
}

function post<T>(name: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  return answer(fetch(`api/${name}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

export const api = {
  changes: (query: Query) => get<Listed>("changes", query),
  change: (id: string) => get<{ change: Change; diff: Diff }>("change", { id }),
  compare: (path: string, from: VersionName, to: VersionName) => get<Diff>("compare", { path, from, to }),
  answer: (server: string, request: number, answer: AnswerKind, message?: string) =>
    post<object>("answer", { server, request, answer, message: message || null }),
  wholeDiff: (server: string, request: number) => post<object>("diff", { server, request }),
  pause: (server: string | null, paused: boolean) => post<object>("pause", { server, paused }),
  undo: (what: UndoSubject, how: { preview: boolean; leave_out: boolean }) => post<UndoOutcome>("undo", { what, ...how }),
};
