// One change: its description, its diff, and its undo.

import { LitElement, html, nothing } from "lit";
import type { PropertyValues, TemplateResult } from "lit";
import { api } from "./api.ts";
import "./diff-view.ts";
import { go } from "./route.ts";
import { belowRoot, dayOf, size, timeOf, visible } from "./text.ts";
import type { Change, Diff, State } from "./types.ts";
import { askUndo } from "./undo.ts";

export class PinDetail extends LitElement {
  static override properties = { changeId: { attribute: false }, known: { attribute: false }, change: { state: true }, diff: { state: true }, problem: { state: true } };

  changeId = "";
  /** The change, if the list has it. Then the head is shown at once. */
  known: Change | null = null;
  change: Change | null = null;
  diff: Diff | null = null;
  problem = "";

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("known") && this.known) this.change = this.known;
    if (changed.has("changeId")) void this.load();
  }

  private async load(): Promise<void> {
    const id = this.changeId;
    [this.diff, this.problem] = [null, ""];
    if (this.change?.id !== id) this.change = this.known;
    try {
      const { change, diff } = await api.change(id);
      if (id === this.changeId) [this.change, this.diff] = [change, diff];
    } catch (error) {
      if (id === this.changeId) this.problem = error instanceof Error ? error.message : String(error);
    }
  }

  /** Asks whether to undo the change. */
  undo(): void {
    const { change } = this;
    if (!change || change.undone || change.checkpoint !== undefined) return;
    const title = change.undoes ? "Undo the undo" : change.group ? "Undo the changes that were made together" : "Undo this change";
    askUndo({ change: change.id }, title);
  }

  protected override render(): TemplateResult {
    const { change } = this;
    if (!change) return html`<p class="empty">${this.problem || "Loading…"}</p>`;
    const path = change.moved_to ?? change.path;
    const { root, rest } = belowRoot(path, change.roots);
    return html`
      <h2 class="path"><a href=${go("file", { path })} title="History of the file">${visible(rest)}</a></h2>
      <p class="muted">
        ${change.kind} by <code>${visible(change.tool) || "-"}</code> on ${dayOf(change.time)} at ${timeOf(change.time)} · session
        <a href=${go("changes", { session: change.session })}>${visible(change.session)}</a>
        ${root ? html` · in <code>${visible(root)}</code>` : nothing} · id <code>${visible(change.id)}</code>
      </p>
      ${change.moved_to ? html`<p>Moved from <code>${visible(change.path)}</code></p>` : nothing}
      ${change.undoes ? html`<p>Undoes <a href=${go("changes", { id: change.undoes })}>${visible(change.undoes)}</a>.</p>` : nothing}
      ${change.confirmed ? nothing : html`<p class="warn">The process was killed while it made this change, so perhaps it was not made.</p>`}
      <div class="buttons">
        ${change.checkpoint !== undefined
          ? nothing
          : change.undone
            ? html`<span class="muted">This change was undone.</span>`
            : html`<button @click=${this.undo}>${change.undoes ? "Undo the undo" : change.group ? "Undo the group" : "Undo"}… <kbd>u</kbd></button>`}
        <button @click=${() => askUndo({ session: change.session }, `Undo all that session ${visible(change.session)} did`)}>Undo the session…</button>
        <a class="button" href=${go("file", { path })}>History</a>
      </div>
      ${this.problem ? html`<p class="warn" role="alert">${this.problem}</p>` : this.diff ? this.renderDiff(this.diff, change) : html`<p class="muted">Loading…</p>`}
    `;
  }

  private renderDiff(diff: Diff, change: Change): TemplateResult {
    if (diff.diff) return html`<pin-diff .text=${diff.diff} .label=${`Change of ${visible(change.path)}`}></pin-diff>`;
    if (change.moved_to || change.checkpoint !== undefined) return html``;
    if (diff.diff === "") return html`<p class="muted">Nothing in the text changed.</p>`;
    return html`<p class="muted">There is no diff: a version is not text, is too large, or is not kept any more.</p>
      <p>Before: ${describe(diff.states[0])}<br />After: ${describe(diff.states[1])}</p>`;
  }
}
customElements.define("pin-detail", PinDetail);

/** The description of a state. */
export function describe(state: State): string {
  switch (state.kind) {
    case "absent":
      return "nothing";
    case "directory":
      return "a directory";
    case "link":
      return `a symlink to ${visible(state.target)}`;
    case "file":
      return `a file of ${size(state.bytes)}, blake3 ${state.hash.slice(0, 16)}…`;
  }
}
