// Now: approval requests, running servers and their sessions, and calls as they happen.

import { LitElement, html, nothing } from "lit";
import type { TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { api } from "./api.ts";
import type { Live } from "./live.ts";
import { failed } from "./notice.ts";
import type { PinRequest } from "./request.ts";
import "./request.ts";
import { go } from "./route.ts";
import "./rows.ts";
import { count, duration, timeOf, visible } from "./text.ts";
import type { Call, LiveChange, Server } from "./types.ts";

/** How long a request is in its place before it accepts answers, in milliseconds. */
const SETTLES = 500;

export class PinNow extends LitElement {
  static override properties = {
    live: { attribute: false },
    version: { attribute: false },
    session: { state: true },
    words: { state: true },
    current: { state: true },
    ready: { state: true },
  };

  declare live: Live;
  version = 0;
  /** The session whose calls are shown; all if there is none. */
  session = "";
  words = "";
  /** The key of the request that the keyboard answers. */
  current = "";
  /** The keys of the requests that accept answers. */
  ready = new Set<string>();
  private shown: string[] = [];
  private timer = 0;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(): void {
    const keys = this.live.requests.map(({ key }) => key);
    if (keys.join() === this.shown.join()) return;
    // A request that has moved up is in the place of another one, which a second key or click was meant for.
    const moved = this.shown.some((key, nth) => keys[nth] !== key);
    if (moved) this.ready = new Set();
    this.shown = keys;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => (this.ready = new Set(this.shown)), SETTLES);
  }

  /** Handles a key. */
  key(key: string): boolean {
    const requests = this.live.requests;
    if (!requests.length) return false;
    const at = Math.max(0, requests.findIndex((request) => request.key === this.current));
    if (key === "j" || key === "k") {
      const next = requests[Math.min(requests.length - 1, Math.max(0, at + (key === "j" ? 1 : -1)))];
      this.current = next?.key ?? "";
      void this.updateComplete.then(() => this.element()?.scrollIntoView({ block: "nearest" }));
      return true;
    }
    const element = this.element();
    if (key === "y" || key === "a") element?.answer("once");
    else if (key === "s") element?.answer("session");
    else if (key === "n") element?.answer("no");
    else if (key === "m") element?.deny();
    else if (key === "d") element?.showWhole();
    else return false;
    return true;
  }

  private element(): PinRequest | undefined {
    const all = [...this.querySelectorAll<PinRequest>("pin-request")];
    return all.find((element) => element.request.key === this.current) ?? all[0];
  }

  private get calls(): Call[] {
    const words = this.words.toLowerCase();
    const has = (text: string | null | undefined) => text?.toLowerCase().includes(words) ?? false;
    return this.live.calls.filter(
      (call) =>
        (!this.session || call.session === this.session) &&
        (!words || has(call.tool) || has(call.parameters) || has(call.client) || has(call.end?.outcome) || call.changes.some((it) => has(it.path))),
    );
  }

  protected override render(): TemplateResult {
    const { requests, servers } = this.live;
    const first = requests.some((request) => request.key === this.current) ? this.current : requests[0]?.key;
    const calls = this.calls;
    return html`
      <div class="now">
        <section class="requests" aria-label="Approval requests" ?hidden=${!requests.length}>
          <h2>${count(requests.length, "request")} waiting for your answer</h2>
          ${repeat(
            requests,
            (request) => request.key,
            (request) => html`<pin-request .request=${request} .current=${request.key === first && requests.length > 1} .ready=${this.ready.has(request.key)}></pin-request>`,
          )}
        </section>
        <section class="servers" aria-label="Servers">
          <h2>Servers</h2>
          ${servers.size ? [...servers.values()].map((server) => this.renderServer(server)) : this.renderNoServer()}
        </section>
        <section class="calls" aria-label="Calls">
          <div class="bar">
            <h2>Calls</h2>
            ${this.session ? html`<button class="chip" @click=${() => (this.session = "")}>session ${visible(this.session)} ×</button>` : nothing}
            <input type="search" class="search" placeholder="Search calls" aria-label="Search calls" .value=${this.words}
              @input=${(event: Event) => (this.words = (event.target as HTMLInputElement).value)} />
          </div>
          ${calls.length
            ? html`<pin-rows class="list" role="list" aria-label="Calls, newest first" tabindex="0"
                .count=${calls.length} .height=${rowHeight()} .version=${[this.version, calls]}
                .row=${(nth: number) => renderCall(calls[nth], nth, calls.length)}></pin-rows>`
            : html`<p class="empty">${this.live.calls.length ? "No call matches." : "No calls yet. They appear here as they happen."}</p>`}
        </section>
      </div>
    `;
  }

  private renderNoServer(): TemplateResult {
    if (this.live.status === "connecting") return html`<p class="empty">Looking for servers…</p>`;
    const others = this.live.others;
    return html`<div class="empty">
      <p>No server is running${others ? html` in the chosen directories (${others} elsewhere)` : nothing}.</p>
      <p>Servers appear when an MCP client starts <code>pinfold serve</code>, for example with</p>
      <p><code>claude mcp add pinfold -- pinfold serve /path/to/project</code></p>
    </div>`;
  }

  private renderServer(server: Server): TemplateResult {
    const sessions = new Map<string, { client: string | null; calls: number; changes: number }>();
    for (const call of this.live.calls) {
      if (call.server !== server.id) continue;
      const known = sessions.get(call.session) ?? { client: call.client, calls: 0, changes: 0 };
      sessions.set(call.session, { client: call.client ?? known.client, calls: known.calls + 1, changes: known.changes + call.changes.length });
    }
    const pause = () => api.pause(server.id, !server.paused).catch(failed);
    return html`<article class="server ${server.paused ? "paused" : ""}">
      <div class="bar">
        <h3>${server.clients.length ? server.clients.map(visible).join(", ") : "No client yet"}</h3>
        <button class="quiet" @click=${pause} aria-label="${server.paused ? "Resume" : "Pause"} changes of process ${server.pid}">${server.paused ? "Resume" : "Pause"}</button>
      </div>
      ${server.paused ? html`<p class="warn">Paused: every change needs your approval.</p>` : nothing}
      <p class="roots">${server.roots.map((root) => html`<code>${visible(root)}</code>`)}</p>
      <p class="muted">${server.mode} · ${server.dialects.join(", ")} · ${server.transport} · process ${server.pid} · since ${timeOf(server.started)}${server.journal ? nothing : " · no journal, so no undo"}</p>
      ${sessions.size
        ? html`<ul class="sessions">
            ${[...sessions].map(
              ([id, session]) => html`<li>
                <button class="link" aria-pressed=${this.session === id} @click=${() => (this.session = this.session === id ? "" : id)}>${visible(id)}</button>
                <span class="muted">${session.client ? `${visible(session.client)} · ` : ""}${count(session.calls, "call")}</span>
                <a href=${go("changes", { session: id })}>${count(session.changes, "change")}</a>
              </li>`,
            )}
          </ul>`
        : nothing}
    </article>`;
  }
}
customElements.define("pin-now", PinNow);

/** Rows have two lines on a narrow screen. */
export function rowHeight(): number {
  return matchMedia("(max-width: 700px)").matches ? 46 : 26;
}

/** What the user decided, by the decision in the audit log. */
const DECISIONS: Record<string, string> = {
  approved: " · approved",
  denied_by_user: " · denied by you",
  unanswered: " · no answer",
  no_approver: " · nobody to ask",
  deferred: " · asked in the client",
};

function renderCall(call: Call | undefined, nth: number, of: number): TemplateResult {
  if (!call) return html``;
  const { end } = call;
  const bad = end && end.outcome !== "ok";
  const outcome = end ? (bad ? end.outcome : "ok") : "running";
  const decision = (end && DECISIONS[end.decision]) ?? "";
  return html`<div class="row call ${bad ? "bad" : ""} ${end ? "" : "running"}" role="listitem" aria-setsize=${of} aria-posinset=${nth + 1}>
    <span class="time">${timeOf(call.time)}</span>
    <span class="tool">${visible(call.tool)}</span>
    <span class="what">${visible(call.parameters ?? "")}</span>
    <span class="made">${call.changes.map(renderMade)}</span>
    <span class="outcome" title=${end?.why ?? ""}>${outcome}${decision}</span>
    <span class="took">${end ? duration(end.duration_ms) : ""}</span>
  </div>`;
}

function renderMade(change: LiveChange): TemplateResult {
  const lines = change.added === null ? change.kind : html`<ins>+${change.added}</ins> <del>−${change.removed}</del>`;
  return change.id ? html`<a href=${go("changes", { id: change.id })} title="Show the change">${lines}</a>` : html`<span>${lines}</span>`;
}
