// The frame of the page: the views, the state of the connection, pause, keys and help.

import { LitElement, html, nothing } from "lit";
import type { TemplateResult } from "lit";
import { api } from "./api.ts";
import type { PinChanges } from "./changes.ts";
import "./changes.ts";
import { toggleDiffMode } from "./diff-view.ts";
import "./file.ts";
import type { PinFile } from "./file.ts";
import { Live } from "./live.ts";
import { failed, tell } from "./notice.ts";
import type { PinNow } from "./now.ts";
import "./now.ts";
import { type Route, go, route } from "./route.ts";
import { count, visible } from "./text.ts";
import type { ApprovalRequest } from "./types.ts";
import "./undo.ts";

const ENDS: Record<string, string> = {
  once: "Allowed once",
  session: "Allowed for the session",
  no: "Denied",
  cancelled: "Its call has ended",
  expired: "Nobody answered in time, so it was denied",
  passed_on: "The client is asked instead",
  gone: "Its server has ended",
};

const KEYS: [keys: string, meaning: string][] = [
  ["j k", "next and previous request, change or version"],
  ["y", "allow once"],
  ["s", "allow for this session"],
  ["n", "deny"],
  ["m", "deny with a message"],
  ["d", "show the whole diff"],
  ["u", "undo the chosen change"],
  ["p", "pause or resume changes"],
  ["v", "diffs side by side or unified"],
  ["/", "search"],
  ["1 2", "Now, Changes"],
  ["Enter", "history of the chosen change's file"],
  ["?", "this help"],
];

export class PinApp extends LitElement {
  static override properties = { version: { state: true }, at: { state: true } };

  /** The number of live updates so far. */
  version = 0;
  at: Route = route();
  readonly live = new Live(
    () => this.version++,
    (request) => this.asked(request),
    (request, end) => tell(`${ENDS[end] ?? end}: ${request.path}`),
  );

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.live.connect();
    addEventListener("hashchange", () => (this.at = route()));
    addEventListener("keydown", (event) => this.key(event));
  }

  /** Notifies the user of a request while the page is not visible. */
  private asked(request: ApprovalRequest): void {
    if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
    const notification = new Notification("Pinfold: approval request", { body: request.headline, tag: request.key });
    notification.onclick = () => {
      window.focus();
      location.hash = go("now");
    };
  }

  private async notify(): Promise<void> {
    const permission = await Notification.requestPermission();
    tell(permission === "granted" ? "A notification says when a request waits." : "The browser shows no notifications for this page.");
    this.requestUpdate();
  }

  private pause(): void {
    api.pause(null, !this.live.paused).catch(failed);
  }

  private help(): void {
    this.querySelector<HTMLDialogElement>("dialog.help")?.showModal();
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (target.closest("input, textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const isButton = target.closest("button, a") !== null;
    const view = this.querySelector<PinNow | PinChanges | PinFile>("pin-now, pin-changes, pin-file");
    if (event.key === "?") this.help();
    else if (event.key === "p") this.pause();
    else if (event.key === "v") toggleDiffMode();
    else if (event.key === "1") location.hash = go("now");
    else if (event.key === "2") location.hash = go("changes");
    else if (event.key === "/") this.querySelector<HTMLElement>(".search")?.focus();
    else if ((isButton && event.key === "Enter") || !view?.key(event.key)) return;
    event.preventDefault();
  }

  protected override updated(): void {
    const waiting = this.live.requests.length;
    document.title = waiting ? `(${waiting}) ${waiting === 1 ? "request waits" : "requests wait"} · Pinfold` : "Pinfold";
  }

  protected override render(): TemplateResult {
    const { live } = this;
    const waiting = live.requests.length;
    const link = (view: "now" | "changes", label: unknown) =>
      html`<a href=${go(view)} aria-current=${this.at.view === view ? "page" : "false"}>${label}</a>`;
    const canNotify = "Notification" in window && Notification.permission === "default";
    return html`
      <a class="skip" href="#main" @click=${this.skip}>Skip to the content</a>
      <header>
        <h1><img src="icon.svg" alt="" width="20" height="20" /> Pinfold</h1>
        <nav aria-label="Views">
          ${link("now", html`Now${waiting ? html` <span class="badge" aria-label="${count(waiting, "request")} waiting">${waiting}</span>` : nothing}`)}
          ${link("changes", "Changes")}
        </nav>
        <div class="tools">
          ${canNotify ? html`<button class="quiet" @click=${this.notify}>Notify me</button>` : nothing}
          <button class=${live.paused ? "paused" : ""} ?disabled=${!live.servers.size} aria-pressed=${live.paused} @click=${this.pause}>
            ${live.paused ? "Resume changes" : "Pause changes"}
          </button>
          <button class="quiet" aria-label="Keys and help" @click=${this.help}>?</button>
        </div>
      </header>
      ${this.renderStatus()}
      <main id="main" tabindex="-1">${this.renderView()}</main>
      <pin-undo></pin-undo>
      <pin-notices></pin-notices>
      <div class="sr" role="alert">${waiting ? `${count(waiting, "approval request")} waiting: ${live.requests[0]?.headline ?? ""}` : ""}</div>
      ${this.renderHelp()}
    `;
  }

  private skip(event: Event): void {
    event.preventDefault();
    this.querySelector<HTMLElement>("main")?.focus();
  }

  private renderStatus(): TemplateResult | typeof nothing {
    switch (this.live.status) {
      case "lost":
        return html`<p class="banner" role="alert">Disconnected from <code>pinfold page</code>; trying again. If it was stopped, run it again and open the new link. Requests that wait are passed on to the client.</p>`;
      case "over":
        return html`<p class="banner" role="alert">This page is of an earlier run of <code>pinfold page</code>. Run it again and open the new link.</p>`;
      default:
        return this.live.paused
          ? html`<p class="banner paused" role="status">Changes are paused: each needs your approval until you resume them.</p>`
          : nothing;
    }
  }

  private renderView(): TemplateResult {
    switch (this.at.view) {
      case "changes":
        return html`<pin-changes .with=${this.at.with} .changeCount=${this.live.changes}></pin-changes>`;
      case "file":
        return html`<pin-file .path=${this.at.with.get("path") ?? ""}></pin-file>`;
      case "now":
        return html`<pin-now .live=${this.live} .version=${this.version}></pin-now>`;
    }
  }

  private renderHelp(): TemplateResult {
    const roots = [...this.live.servers.values()].flatMap((server) => server.roots);
    return html`<dialog class="help" aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl>
        ${KEYS.map(([keys, meaning]) => html`<div><dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${meaning}</dd></div>`)}
      </dl>
      <p class="muted">${roots.length ? `Watching ${[...new Set(roots)].map(visible).join(", ")}.` : "No server is running."}</p>
      <button @click=${() => this.querySelector<HTMLDialogElement>("dialog.help")?.close()}>Close</button>
    </dialog>`;
  }
}
customElements.define("pin-app", PinApp);
