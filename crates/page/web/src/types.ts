// The types of the server's messages: the events of feeds (docs/WATCHING.md), and the journal.

export interface Server {
  id: string;
  pid: number;
  pinfold: string;
  started: string;
  transport: string;
  clients: string[];
  roots: string[];
  dialects: string[];
  mode: string;
  journal: string | null;
  paused: boolean;
}

/** A change, as a server tells it. */
export interface LiveChange {
  call: number | null;
  time: string;
  session: string;
  tool: string;
  path: string;
  moved_to: string | null;
  kind: string;
  id: string | null;
  added: number | null;
  removed: number | null;
}

export interface CallEnd {
  paths: { given?: string; path?: string | null }[];
  decision: string;
  why: string | null;
  outcome: string;
  duration_ms: number;
  bytes: number;
}

export interface Call {
  key: string;
  server: string;
  time: string;
  session: string;
  client: string | null;
  tool: string;
  parameters: string | null;
  end?: CallEnd;
  changes: LiveChange[];
}

export type AnswerKind = "once" | "session" | "no";

export interface ApprovalRequest {
  key: string;
  server: string;
  request: number;
  time: string;
  session: string;
  client: string | null;
  tool: string;
  access: string;
  given: string;
  path: string;
  reason: string;
  headline: string;
  preview: string;
  answers: AnswerKind[];
  /** The whole diff, once it was asked for. */
  diff?: string;
}

export type State =
  | { kind: "absent" }
  | { kind: "file"; hash: string; bytes: number; mode?: number }
  | { kind: "directory"; mode?: number }
  | { kind: "link"; target: string };

/** A change in the journal. */
export interface Change {
  id: string;
  /** Milliseconds since 1970. */
  time: number;
  session: string;
  tool: string;
  path: string;
  roots?: string[];
  before: State;
  after: State;
  moved_to?: string;
  undoes?: string;
  also_undoes?: string[];
  group?: string;
  checkpoint?: string;
  kind: "created" | "changed" | "deleted" | "moved" | "checkpoint";
  confirmed: boolean;
  undone: boolean;
}

export interface Listed {
  changes: Change[];
  more: boolean;
  journals: string[];
}

export interface Query {
  before?: string;
  session?: string;
  path?: string;
  words?: string;
  since?: number;
  until?: number;
  limit?: number;
}

export interface Diff {
  diff: string | null;
  states: [State, State];
}

export type VersionName = { before: string } | { after: string } | "now";

export type UndoSubject = { change: string } | { session: string };

export interface UndoOutcome {
  files: { path: string; what: string; back_to: string | null; lines: [added: number, removed: number] | null }[];
  refused: { path: string; why: string }[];
  diff: string | null;
  id: string | null;
}
