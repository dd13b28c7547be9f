// Shows a diff, unified or side by side, with changed words marked.

import { LitElement, html } from "lit";
import type { PropertyValues, TemplateResult } from "lit";
import "./rows.ts";
import { type Pair, type Row, parse, pieces, sideBySide } from "./diff.ts";
import { count } from "./text.ts";

/** The maximum number of shown characters of a line. A preview has fewer, so that its own note on missing characters is shown. */
const MAX_CHARS = 6000;
const ROW_HEIGHT = 20;

export type DiffMode = "unified" | "split";

/** The user's view of diffs. */
export function diffMode(): DiffMode {
  return localStorage.getItem("diff") === "split" ? "split" : "unified";
}

/** Changes the view of all diffs. */
export function toggleDiffMode(): void {
  localStorage.setItem("diff", diffMode() === "split" ? "unified" : "split");
  document.dispatchEvent(new Event("diff-mode"));
}

export class PinDiff extends LitElement {
  static override properties = { text: { attribute: false }, label: { attribute: false } };

  text = "";
  label = "Diff";
  private rows: Row[] = [];
  private pairs: Pair[] = [];
  private columns = 0;
  private readonly changedMode = () => this.requestUpdate();

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("diff-mode", this.changedMode);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    document.removeEventListener("diff-mode", this.changedMode);
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("text")) return;
    this.rows = parse(this.text);
    this.pairs = sideBySide(this.rows);
    let longest = 0;
    for (const row of this.rows) longest = Math.max(longest, row.text.length);
    this.columns = Math.min(longest, MAX_CHARS + 40);
  }

  protected override render(): TemplateResult {
    const split = diffMode() === "split";
    const [added, removed] = ["added", "removed"].map((kind) => this.rows.filter((row) => row.kind === kind).length);
    const lines = split ? this.pairs.length : this.rows.length;
    return html`
      <div class="diff-head">
        <span class="counts"><ins>+${added}</ins> <del>−${removed}</del></span>
        <span class="muted">${count(lines, "line")}</span>
        <button class="quiet" @click=${toggleDiffMode} aria-pressed=${split}>Side by side</button>
      </div>
      <pin-rows
        class="diff ${split ? "split" : ""}"
        tabindex="0"
        role="group"
        aria-label="${this.label}: ${count(added ?? 0, "line")} added, ${removed} removed"
        .count=${lines}
        .height=${ROW_HEIGHT}
        .columns=${split ? 2 * this.columns + 16 : this.columns + 16}
        .version=${[this.text, split]}
        .row=${(nth: number) => (split ? this.pair(this.pairs[nth]) : this.line(this.rows[nth]))}
      ></pin-rows>
    `;
  }

  protected override updated(): void {
    // The height fits the content, up to the maximum in the style sheet.
    const rows = this.querySelector("pin-rows");
    const lines = diffMode() === "split" ? this.pairs.length : this.rows.length;
    if (rows instanceof HTMLElement) rows.style.height = `${Math.max(lines, 1) * ROW_HEIGHT + 18}px`;
  }

  private line(row: Row | undefined): TemplateResult {
    if (!row) return html``;
    if (!("old" in row) && !("new" in row)) return html`<div class="line ${row.kind}">${cut(row.text)}</div>`;
    // There are no blanks between the elements, since they would be shown.
    const numbers = html`<span class="number" aria-hidden="true">${row.old ?? ""}</span><span class="number" aria-hidden="true">${row.new ?? ""}</span>`;
    return html`<div class="line ${row.kind}">${numbers}<span class="sign">${sign(row)}</span><span class="code">${content(row)}</span></div>`;
  }

  private pair(pair: Pair | undefined): TemplateResult {
    if (!pair) return html``;
    if ("both" in pair) return this.line(pair.both);
    return html`<div class="line two">${this.side(pair.left, "old")}${this.side(pair.right, "new")}</div>`;
  }

  private side(row: Row | undefined, side: "old" | "new"): TemplateResult {
    if (!row) return html`<div class="side none"></div>`;
    const number = html`<span class="number" aria-hidden="true">${row[side] ?? ""}</span>`;
    return html`<div class="side ${row.kind}">${number}<span class="sign">${sign(row)}</span><span class="code">${content(row)}</span></div>`;
  }
}
customElements.define("pin-diff", PinDiff);

function sign(row: Row): string {
  return row.kind === "added" ? "+" : row.kind === "removed" ? "−" : " ";
}

/** A line with its changed words marked. */
function content(row: Row): unknown {
  if (!row.twin || row.text.length > MAX_CHARS || row.twin.text.length > MAX_CHARS) return cut(row.text);
  return pieces(row.text, row.twin.text).map((piece) => (piece.changed ? html`<mark>${piece.text}</mark>` : piece.text));
}

/** A line, or the beginning of a long one with the number of missing characters. */
function cut(text: string): unknown {
  if (text.length <= MAX_CHARS) return text;
  const missing = count(text.length - MAX_CHARS, "character");
  return html`${text.slice(0, MAX_CHARS)}<span class="cut"> … [${missing} not shown]</span>`;
}
