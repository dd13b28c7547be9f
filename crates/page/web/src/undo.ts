// Undo: the preview with what would be refused, then the undo itself, then its own undo.

import { LitElement, html, nothing } from "lit";
import type { TemplateResult } from "lit";
import { api } from "./api.ts";
import "./diff-view.ts";
import { failed, tell } from "./notice.ts";
import { count, visible } from "./text.ts";
import type { UndoOutcome, UndoSubject } from "./types.ts";

export class PinUndo extends LitElement {
  static override properties = { preview: { state: true }, problem: { state: true }, busy: { state: true } };

  preview: UndoOutcome | null = null;
  problem = "";
  busy = false;
  private what: UndoSubject | null = null;
  private heading = "";

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  /** Shows what an undo would do. */
  async open(what: UndoSubject, title: string): Promise<void> {
    [this.what, this.heading, this.preview, this.problem, this.busy] = [what, title, null, "", false];
    this.requestUpdate();
    await this.updateComplete;
    this.querySelector("dialog")?.showModal();
    try {
      this.preview = await api.undo(what, { preview: true, leave_out: true });
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }

  private async undo(): Promise<void> {
    if (!this.what || this.busy) return;
    this.busy = true;
    try {
      // Only files that the preview has shown are left out.
      const leave_out = (this.preview?.refused.length ?? 0) > 0;
      const done = await api.undo(this.what, { preview: false, leave_out });
      this.close();
      const { id, files, refused } = done;
      if (!files.length) failed(new Error(`Nothing was undone: ${refused.map((it) => `${visible(it.path)}: ${it.why}`).join("; ")}`));
      else {
        const redo = id ? { label: "Undo that", run: () => void this.open({ change: id }, "Undo the undo") } : undefined;
        tell(`Undone: ${count(files.length, "file")}.`, redo);
      }
      document.dispatchEvent(new Event("journal-changed"));
    } catch (error) {
      this.close();
      failed(error);
    } finally {
      this.busy = false;
    }
  }

  private close(): void {
    this.querySelector("dialog")?.close();
  }

  protected override render(): TemplateResult {
    const { preview } = this;
    const files = preview?.files.length ?? 0;
    const label = preview?.refused.length ? `Undo the others: ${count(files, "file")}` : `Undo: ${count(files, "file")}`;
    return html`<dialog aria-labelledby="undo-title">
      <h2 id="undo-title">${this.heading}</h2>
      ${this.problem ? html`<p class="warn">${this.problem}</p>` : !preview ? html`<p class="muted">Looking at the files…</p>` : this.renderPreview(preview)}
      <div class="buttons">
        ${files ? html`<button class="yes" ?disabled=${this.busy} @click=${this.undo}>${label}</button>` : nothing}
        <button @click=${this.close}>${files ? "Cancel" : "Close"}</button>
      </div>
    </dialog>`;
  }

  private renderPreview(preview: UndoOutcome): TemplateResult {
    const { files, refused } = preview;
    return html`
      ${refused.length
        ? html`<p class="warn">${files.length ? "These files would stay as they are:" : "It would be refused:"}</p>
            <ul class="files">
              ${refused.map((file) => html`<li><code>${visible(file.path)}</code><br /><span class="why">${visible(file.why)}</span></li>`)}
            </ul>
            <p class="muted">To undo these too, undo later changes first, or restore the files by hand.</p>`
        : nothing}
      ${files.length ? html`<ul class="files">${files.map(renderFile)}</ul>` : refused.length ? nothing : html`<p>There is nothing to undo.</p>`}
      ${preview.diff ? html`<pin-diff .text=${preview.diff} .label=${"What would change"}></pin-diff>` : nothing}
    `;
  }
}
customElements.define("pin-undo", PinUndo);

function renderFile(file: UndoOutcome["files"][number]): TemplateResult {
  const lines = file.lines ? html` <ins>+${file.lines[0]}</ins> <del>−${file.lines[1]}</del>` : nothing;
  const back = file.back_to ? html` to <code>${visible(file.back_to)}</code>` : nothing;
  return html`<li><span class="what">${file.what}</span> <code>${visible(file.path)}</code>${back}${lines}</li>`;
}

/** Shows what an undo would do, and lets the user do it. */
export function askUndo(what: UndoSubject, title: string): void {
  void document.querySelector<PinUndo>("pin-undo")?.open(what, title);
}
