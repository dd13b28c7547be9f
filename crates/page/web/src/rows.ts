// A list of rows of one height. Only rows on screen have elements.

import { LitElement, html } from "lit";
import type { TemplateResult } from "lit";

/** The number of extra rows above and below the screen, so that scrolling shows no gaps. */
const OVERSCAN = 12;

export class PinRows extends LitElement {
  static override properties = {
    count: { attribute: false },
    height: { attribute: false },
    row: { attribute: false },
    columns: { attribute: false },
    version: { attribute: false },
  };

  count = 0;
  /** The height of a row in pixels. */
  height = 24;
  /** Renders a row by its number. */
  row: (nth: number) => TemplateResult = () => html``;
  /** How wide the rows are, in characters; the width of the list if it is 0. */
  columns = 0;
  /** Changes when rows have to be rendered again. */
  version: unknown = 0;
  /** Called when the last rows are shown. */
  atEnd: () => void = () => {};

  private readonly resized = new ResizeObserver(() => this.requestUpdate());
  private readonly scrolled = () => this.requestUpdate();

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.resized.observe(this);
    this.addEventListener("scroll", this.scrolled, { passive: true });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.resized.disconnect();
    this.removeEventListener("scroll", this.scrolled);
  }

  /** The indexes of the rows with elements. */
  private range(): [first: number, end: number] {
    const shown = Math.ceil((this.clientHeight || 600) / this.height);
    const top = Math.min(Math.floor(this.scrollTop / this.height), Math.max(0, this.count - shown));
    return [Math.max(0, top - OVERSCAN), Math.min(this.count, top + shown + OVERSCAN)];
  }

  /** Scrolls as little as necessary to show a row. */
  reveal(nth: number): void {
    const [top, bottom] = [nth * this.height, (nth + 1) * this.height];
    if (top < this.scrollTop) this.scrollTop = top;
    else if (bottom > this.scrollTop + this.clientHeight) this.scrollTop = bottom - this.clientHeight;
  }

  protected override render(): TemplateResult {
    const [first, end] = this.range();
    const rows = Array.from({ length: end - first }, (_, nth) => this.row(first + nth));
    return html`<div class="space" role="presentation"><div class="window" role="presentation">${rows}</div></div>`;
  }

  protected override updated(): void {
    const [first, end] = this.range();
    const space = this.firstElementChild;
    const shown = space?.firstElementChild;
    // Properties and no attributes: the page forbids inline styles.
    if (space instanceof HTMLElement && shown instanceof HTMLElement) {
      space.style.height = `${this.count * this.height}px`;
      space.style.minWidth = this.columns ? `${this.columns}ch` : "";
      shown.style.transform = `translateY(${first * this.height}px)`;
    }
    if (end === this.count) this.atEnd();
  }
}
customElements.define("pin-rows", PinRows);
