// Changes: the journal of all workspaces, newest first, and the selected change.

import { LitElement, html, nothing } from "lit";
import type { PropertyValues, TemplateResult } from "lit";
import { api } from "./api.ts";
import "./detail.ts";
import type { PinDetail } from "./detail.ts";
import { failed } from "./notice.ts";
import { go } from "./route.ts";
import type { PinRows } from "./rows.ts";
import { belowRoot, count, dayOf, splitName, timeOf, visible } from "./text.ts";
import type { Change, Query } from "./types.ts";
import { askUndo } from "./undo.ts";

/** How long to wait after a key before searching, in milliseconds. */
const TYPING = 200;

export const MARKS: Record<Change["kind"], string> = { created: "+", changed: "~", deleted: "−", moved: "→", checkpoint: "⚑" };

export class PinChanges extends LitElement {
  static override properties = {
    with: { attribute: false },
    changeCount: { attribute: false },
    changes: { state: true },
    more: { state: true },
    state: { state: true },
    problem: { state: true },
    current: { state: true },
  };

  /** The filters in the address: a session, a path, words, a time, the id of a change. */
  with = new URLSearchParams();
  /** The number of changes that servers have reported. When it grows, the newest changes are loaded again. */
  changeCount = 0;
  changes: Change[] = [];
  more = false;
  state: "loading" | "loaded" | "failed" = "loading";
  problem = "";
  /** The id of the selected change. */
  current = "";
  private journals: string[] = [];
  private timer = 0;
  private loads = 0;
  private readonly changed = () => void this.load();

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("journal-changed", this.changed);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    document.removeEventListener("journal-changed", this.changed);
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("with")) {
      this.current = this.with.get("id") ?? this.current;
      void this.load();
    } else if (changed.has("changeCount")) {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.refresh(), TYPING);
    }
  }

  private get query(): Query {
    const query: Query = {};
    const [session, path, words] = ["session", "path", "words"].map((name) => this.with.get(name));
    if (session) query.session = session;
    if (path) query.path = path;
    if (words) query.words = words;
    const [since, until] = ["since", "until"].map((name) => Date.parse(`${this.with.get(name)}T00:00`));
    if (since) query.since = since;
    // To the end of that day.
    if (until) query.until = until + 24 * 60 * 60 * 1000;
    return query;
  }

  /** Loads the newest changes. Loads as many as are shown, so that the list does not jump. */
  private async load(): Promise<void> {
    const load = ++this.loads;
    const shown = this.changes.length;
    try {
      let listed = await api.changes(this.query);
      const changes = listed.changes;
      while (listed.more && changes.length < shown && load === this.loads) {
        listed = await api.changes({ ...this.query, before: changes.at(-1)?.id ?? "" });
        changes.push(...listed.changes);
      }
      if (load !== this.loads) return;
      [this.changes, this.more, this.journals, this.state] = [changes, listed.more, listed.journals, "loaded"];
    } catch (error) {
      if (load !== this.loads) return;
      [this.state, this.problem] = ["failed", error instanceof Error ? error.message : String(error)];
    }
  }

  /** Loads new changes. Loads the others again only if one of them was undone. */
  private async refresh(): Promise<void> {
    const load = ++this.loads;
    const listed = await api.changes(this.query).catch(() => null);
    if (load !== this.loads) return;
    const newest = listed?.changes ?? [];
    const [known, loaded] = [new Set(this.changes.map(({ id }) => id)), new Set(newest.map(({ id }) => id))];
    const undone = newest.filter(({ id }) => !known.has(id)).flatMap((change) => [change.undoes ?? [], change.also_undoes ?? []].flat());
    const joint = this.changes.findIndex(({ id }) => id === newest.at(-1)?.id);
    if (joint < 0 || undone.some((id) => !loaded.has(id))) await this.load();
    else this.changes = [...newest, ...this.changes.slice(joint + 1)];
  }

  /** Loads older changes. */
  private async loadOlder(): Promise<void> {
    if (!this.more) return;
    this.more = false;
    const load = this.loads;
    const listed = await api.changes({ ...this.query, before: this.changes.at(-1)?.id ?? "" }).catch(failed);
    if (!listed || load !== this.loads) return;
    [this.changes, this.more] = [[...this.changes, ...listed.changes], listed.more];
  }

  /** Handles a key. */
  key(key: string): boolean {
    const at = this.changes.findIndex((change) => change.id === this.current);
    const chosen = this.changes[at];
    if (key === "j" || key === "k") {
      const next = Math.min(this.changes.length - 1, Math.max(0, at + (key === "j" ? 1 : -1)));
      this.choose(this.changes[next]?.id ?? "");
      this.querySelector<PinRows>("pin-rows")?.reveal(next);
    } else if (key === "u" && chosen) this.querySelector<PinDetail>("pin-detail")?.undo();
    else if (key === "Escape") this.choose("");
    else if (key === "Enter" && chosen) location.hash = go("file", { path: chosen.moved_to ?? chosen.path });
    else return false;
    return true;
  }

  private choose(id: string): void {
    this.current = id;
    const query = new URLSearchParams(this.with);
    if (id) query.set("id", id);
    else query.delete("id");
    // The address has the selected change, but the browser's history has no entry for each one.
    history.replaceState(null, "", go("changes", Object.fromEntries(query)));
  }

  private filter(name: string, value: string): void {
    const query = new URLSearchParams(this.with);
    if (value) query.set(name, value);
    else query.delete(name);
    query.delete("id");
    location.hash = go("changes", Object.fromEntries(query));
  }

  private typed(event: Event): void {
    const { value } = event.target as HTMLInputElement;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.filter("words", value), TYPING);
  }

  protected override render(): TemplateResult {
    const chosen = this.changes.find((change) => change.id === this.current);
    return html`<div class="changes ${this.current ? "chosen" : ""}">
      <section class="list-side" aria-label="Changes">
        ${this.renderFilters()} ${this.renderList()}
      </section>
      <section class="detail-side" aria-label="The chosen change">
        ${this.current
          ? html`<button class="back quiet" @click=${() => this.choose("")}>← All changes</button>
              <pin-detail .changeId=${this.current} .known=${chosen ?? null}></pin-detail>`
          : html`<p class="empty">Choose a change to see its diff. <kbd>j</kbd> and <kbd>k</kbd> go through the list.</p>`}
      </section>
    </div>`;
  }

  private renderFilters(): TemplateResult {
    const chip = (name: string, label: string) => {
      const value = this.with.get(name);
      return value ? html`<button class="chip" @click=${() => this.filter(name, "")} title="Show all">${label} ${visible(value)} ×</button>` : nothing;
    };
    const session = this.with.get("session");
    const date = (name: string, label: string) =>
      html`<label>${label} <input type="date" .value=${this.with.get(name) ?? ""} @change=${(event: Event) => this.filter(name, (event.target as HTMLInputElement).value)} /></label>`;
    return html`<div class="filters">
      <input type="search" class="search" placeholder="Search path or tool" aria-label="Search changes" .value=${this.with.get("words") ?? ""} @input=${this.typed} />
      ${date("since", "From")} ${date("until", "To")} ${chip("session", "session")} ${chip("path", "below")}
      ${session ? html`<button @click=${() => askUndo({ session }, `Undo all that session ${visible(session)} did`)}>Undo the session…</button>` : nothing}
    </div>`;
  }

  private renderList(): TemplateResult {
    if (this.state === "failed") {
      return html`<div class="empty" role="alert">
        <p>${this.problem}</p>
        <p><button @click=${() => void this.load()}>Try again</button></p>
      </div>`;
    }
    if (!this.changes.length) {
      if (this.state === "loading") return html`<p class="empty">Loading…</p>`;
      const filtered = [...this.with.keys()].some((name) => name !== "id");
      return filtered
        ? html`<p class="empty">No change matches. <a href=${go("changes")}>Show all</a></p>`
        : html`<p class="empty">No changes yet. Changes that agents make through Pinfold appear here, and can be undone.
            ${this.journals.length ? html`<br /><span class="muted">Journal: ${this.journals.map(visible).join(", ")}</span>` : html`<br />The journal is off: see the setting <code>journal</code>.`}</p>`;
    }
    const at = this.changes.findIndex((change) => change.id === this.current);
    return html`<pin-rows class="list" role="listbox" tabindex="0" aria-label="Changes, newest first"
        aria-activedescendant=${at >= 0 ? `change-${this.current}` : nothing}
        .count=${this.changes.length} .height=${46} .version=${[this.changes, this.current]}
        .atEnd=${() => void this.loadOlder()}
        .row=${(nth: number) => this.renderRow(nth)}></pin-rows>
      <p class="muted foot">${count(this.changes.length, "change")}${this.more ? ", and older ones" : ""}</p>`;
  }

  private renderRow(nth: number): TemplateResult {
    const change = this.changes[nth];
    if (!change) return html``;
    const grouped = (other: Change | undefined) => change.group !== undefined && other?.group === change.group;
    const group = !change.group ? "" : `grouped ${grouped(this.changes[nth - 1]) ? "" : "first"} ${grouped(this.changes[nth + 1]) ? "" : "last"}`;
    const { root, rest } = belowRoot(change.path, change.roots);
    const [directory, name] = splitName(rest);
    return html`<div id="change-${change.id}" role="option" aria-selected=${change.id === this.current} aria-setsize=${this.changes.length} aria-posinset=${nth + 1}
      class="row change ${change.kind} ${change.undone ? "undone" : ""} ${group}" @click=${() => this.choose(change.id)}>
      <span class="mark" title=${change.kind}><span aria-hidden="true">${MARKS[change.kind]}</span><span class="sr">${change.kind}</span></span>
      <span class="path">${change.checkpoint === undefined ? html`<span class="directory">${visible(directory)}</span><b>${visible(name)}</b>` : html`<b>${visible(change.checkpoint) || "checkpoint"}</b>`}${change.moved_to ? html` <span class="directory">→ ${visible(belowRoot(change.moved_to, change.roots).rest)}</span>` : nothing}</span>
      <span class="time">${dayOf(change.time) === dayOf(Date.now()) ? "" : `${dayOf(change.time)} `}${timeOf(change.time)}</span>
      <span class="from">${visible(change.tool) || "-"} · ${visible(change.session)}${root ? ` · ${visible(root)}` : ""}</span>
      <span class="note">${change.undone ? "undone" : change.undoes ? "undo" : change.confirmed ? "" : "interrupted"}</span>
    </div>`;
  }
}
customElements.define("pin-changes", PinChanges);
