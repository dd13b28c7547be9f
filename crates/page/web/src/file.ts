// A file: its versions, and a comparison of any two.

import { LitElement, html, nothing } from "lit";
import type { PropertyValues, TemplateResult } from "lit";
import { api } from "./api.ts";
import { describe } from "./detail.ts";
import "./diff-view.ts";
import { go } from "./route.ts";
import { belowRoot, count, dayOf, splitName, timeOf, visible } from "./text.ts";
import type { Change, Diff, VersionName } from "./types.ts";

/** A version of the file. */
interface Version {
  key: string;
  name: VersionName;
  label: string;
  change?: Change;
}

export class PinFile extends LitElement {
  static override properties = {
    path: { attribute: false },
    changes: { state: true },
    more: { state: true },
    problem: { state: true },
    from: { state: true },
    to: { state: true },
    diff: { state: true },
  };

  path = "";
  changes: Change[] | null = null;
  more = false;
  problem = "";
  /** The versions that are compared, by their keys. */
  from = "";
  to = "";
  diff: Diff | null = null;
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
    if (changed.has("path")) {
      [this.changes, this.from, this.to, this.diff] = [null, "", "", null];
      void this.load();
    } else if (changed.has("from") || changed.has("to")) void this.compare();
  }

  /** The versions, newest first: the current one, the one after each change, and the one before the oldest. */
  private get versions(): Version[] {
    const changes = this.changes ?? [];
    const versions: Version[] = [{ key: "now", name: "now", label: "now, on the disk" }];
    for (const change of changes) {
      if (change.checkpoint === undefined) versions.push({ key: `after-${change.id}`, name: { after: change.id }, label: change.kind, change });
    }
    const oldest = changes.at(-1);
    if (oldest && !this.more) versions.push({ key: `before-${oldest.id}`, name: { before: oldest.id }, label: "before the first change" });
    return versions;
  }

  private async load(): Promise<void> {
    const { path } = this;
    this.problem = "";
    try {
      const listed = await api.changes({ path });
      if (path !== this.path) return;
      [this.changes, this.more] = [listed.changes, listed.more];
      const versions = this.versions;
      // The newest change.
      this.to ||= versions[1]?.key ?? "";
      this.from ||= versions[2]?.key ?? versions[1]?.key ?? "";
      await this.compare();
    } catch (error) {
      this.fail(error);
    }
  }

  private async compare(): Promise<void> {
    const [from, to] = [this.from, this.to].map((key) => this.versions.find((version) => version.key === key));
    if (!from || !to) return;
    const asked = `${from.key} ${to.key}`;
    this.problem = "";
    try {
      const diff = await api.compare(this.path, from.name, to.name);
      if (asked === `${this.from} ${this.to}`) this.diff = diff;
    } catch (error) {
      this.diff = null;
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    this.problem = error instanceof Error ? error.message : String(error);
  }

  /** Handles a key: compares the next older or newer version with the one before it. */
  key(key: string): boolean {
    if (key !== "j" && key !== "k") return false;
    const versions = this.versions;
    const at = versions.findIndex((version) => version.key === this.to) + (key === "j" ? 1 : -1);
    if (versions[at] && versions[at + 1]) [this.to, this.from] = [versions[at].key, versions[at + 1]?.key ?? ""];
    return true;
  }

  protected override render(): TemplateResult {
    const roots = this.changes?.[0]?.roots ?? [];
    const { root, rest } = belowRoot(this.path, roots);
    const [directory, name] = splitName(rest);
    if (this.changes && !this.changes.length) {
      return html`<div class="empty">
        <p>The journal has no change of <code>${visible(this.path)}</code>.</p>
        <p><a href=${go("changes")}>All changes</a></p>
      </div>`;
    }
    return html`<div class="file">
      <h2 class="path"><span class="directory">${visible(directory)}</span>${visible(name)}</h2>
      <p class="muted">${root ? html`in <code>${visible(root)}</code> · ` : nothing}<a href=${go("changes", { path: this.path })}>${count(this.changes?.length ?? 0, "change")}${this.more ? " and more" : ""}</a></p>
      <div class="versions-and-diff">
        <fieldset class="versions">
          <legend>Versions to compare</legend>
          <div class="version head" aria-hidden="true"><span>from</span><span>to</span><span></span></div>
          ${this.versions.map((version) => this.renderVersion(version))}
        </fieldset>
        <div class="compared">
          ${this.problem
            ? html`<p class="warn" role="alert">${this.problem}</p>`
            : !this.diff
              ? html`<p class="muted">Loading…</p>`
              : this.diff.diff
                ? html`<pin-diff .text=${this.diff.diff} .label=${"The two versions"}></pin-diff>`
                : this.renderNoDiff(this.diff)}
        </div>
      </div>
    </div>`;
  }

  private renderNoDiff(diff: Diff): TemplateResult {
    const [from, to] = diff.states;
    const same = diff.diff === "" || JSON.stringify(from) === JSON.stringify(to);
    return same
      ? html`<p class="empty">The two versions are the same.</p>`
      : html`<p class="muted">There is no diff: a version is not text, is too large, or is not kept any more.</p>
          <p>From: ${describe(from)}<br />To: ${describe(to)}</p>`;
  }

  private renderVersion(version: Version): TemplateResult {
    const { change } = version;
    const radio = (side: "from" | "to") =>
      html`<input type="radio" name=${side} aria-label="${side}: ${version.label} ${change ? timeOf(change.time) : ""}" .checked=${this[side] === version.key}
        @change=${() => (this[side] = version.key)} />`;
    return html`<div class="version ${change?.undone ? "undone" : ""}">
      ${radio("from")}${radio("to")}
      <span>${change
        ? html`<a href=${go("changes", { id: change.id })}>${change.undoes ? "undo" : version.label}</a> by ${visible(change.tool) || "-"}
            <span class="muted">${dayOf(change.time)} ${timeOf(change.time)}${change.undone ? " · undone" : ""}</span>`
        : version.label}</span>
    </div>`;
  }
}
customElements.define("pin-file", PinFile);
