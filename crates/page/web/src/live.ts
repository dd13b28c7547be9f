// The servers, calls and approval requests, from the server's events.

import type { ApprovalRequest, Call, CallEnd, LiveChange, Server } from "./types.ts";

type Told = { server: string; [field: string]: unknown };
type Message =
  | { type: "hello" }
  | { type: "no_server"; others: number }
  | (Told & { type: "gone" })
  | (Told & { type: "server" })
  | (Told & { type: "call_started"; call: number })
  | (Told & { type: "call_ended"; call: number })
  | (Told & { type: "change"; call: number | null })
  | (Told & { type: "approval_request"; request: number })
  | (Told & { type: "approval_ended"; request: number; end: string })
  | (Told & { type: "diff"; request: number; text: string })
  | (Told & { type: "error"; message: string });

/** The maximum number of kept calls. */
const MAX_CALLS = 2000;

export class Live {
  /** `connecting` until the first event; `lost` while trying again; `over` when trying again is useless. */
  status: "connecting" | "open" | "lost" | "over" = "connecting";
  servers = new Map<string, Server>();
  /** Newest first. */
  calls: Call[] = [];
  /** Oldest first, since the oldest is answered first. */
  requests: ApprovalRequest[] = [];
  /** The number of running servers that were not selected. */
  others = 0;
  /** The number of changes that servers have reported. */
  changes = 0;
  private byKey = new Map<string, Call>();

  constructor(
    private readonly updated: () => void,
    private readonly asked: (request: ApprovalRequest) => void,
    private readonly ended: (request: ApprovalRequest, end: string) => void,
  ) {}

  connect(): void {
    const source = new EventSource("events");
    source.onmessage = (event: MessageEvent<string>) => {
      this.status = "open";
      this.note(JSON.parse(event.data) as Message);
      this.updated();
    };
    source.onerror = () => {
      this.status = source.readyState === EventSource.CLOSED ? "over" : "lost";
      this.updated();
    };
  }

  /** Whether any server is paused. */
  get paused(): boolean {
    return [...this.servers.values()].some((server) => server.paused);
  }

  note(message: Message): void {
    switch (message.type) {
      case "hello":
        // The server sends everything again.
        this.servers.clear();
        this.byKey.clear();
        [this.calls, this.requests] = [[], []];
        break;
      case "no_server":
        this.others = message.others;
        break;
      case "server":
        this.servers.set(message.server, { ...(message as unknown as Server), id: message.server });
        break;
      case "gone":
        this.servers.delete(message.server);
        for (const request of this.requests.filter((it) => it.server === message.server)) {
          this.ended(request, "gone");
        }
        this.requests = this.requests.filter((request) => request.server !== message.server);
        break;
      case "call_started":
        this.add({ ...(message as unknown as Call), key: `${message.server}/${message.call}`, changes: [] });
        break;
      case "call_ended": {
        const key = `${message.server}/${message.call}`;
        const end = message as unknown as CallEnd;
        const known = this.byKey.get(key);
        if (known) known.end = end;
        else this.add({ ...(message as unknown as Call), key, parameters: null, changes: [], end });
        break;
      }
      case "change":
        this.changes += 1;
        this.byKey.get(`${message.server}/${message.call}`)?.changes.push(message as unknown as LiveChange);
        break;
      case "approval_request": {
        const request = { ...(message as unknown as ApprovalRequest), key: `${message.server}/${message.request}` };
        this.requests = [...this.requests, request];
        this.asked(request);
        break;
      }
      case "approval_ended": {
        const is = (it: ApprovalRequest) => it.server === message.server && it.request === message.request;
        const request = this.requests.find(is);
        this.requests = this.requests.filter((it) => !is(it));
        if (request) this.ended(request, message.end);
        break;
      }
      case "diff":
        this.requests = this.requests.map((it) =>
          it.server === message.server && it.request === message.request ? { ...it, diff: message.text } : it,
        );
        break;
      case "error":
        break;
    }
  }

  private add(call: Call): void {
    this.byKey.set(call.key, call);
    this.calls = [call, ...this.calls];
    if (this.calls.length > MAX_CALLS) {
      const dropped = this.calls.pop();
      if (dropped) this.byKey.delete(dropped.key);
    }
  }
}
