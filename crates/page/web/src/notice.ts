// Short notices at the bottom of the page, which screen readers read out.

import { LitElement, html, nothing } from "lit";
import type { TemplateResult } from "lit";

interface Notice {
  text: string;
  bad: boolean;
  action?: { label: string; run: () => void };
}

/** How long a notice stays, in milliseconds. One with a button, or about a failure, stays longer. */
const STAYS = 6000;

export class PinNotices extends LitElement {
  static override properties = { notices: { state: true } };
  notices: Notice[] = [];

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  show(notice: Notice): void {
    this.notices = [...this.notices.slice(-3), notice];
    setTimeout(() => this.close(notice), notice.bad || notice.action ? 3 * STAYS : STAYS);
  }

  private close(notice: Notice): void {
    this.notices = this.notices.filter((it) => it !== notice);
  }

  protected override render(): TemplateResult {
    return html`<div class="notices" role="status" aria-live="polite">
      ${this.notices.map(
        (notice) => html`<div class="notice ${notice.bad ? "bad" : ""}">
          <span>${notice.text}</span>
          ${notice.action
            ? html`<button @click=${() => (this.close(notice), notice.action?.run())}>${notice.action.label}</button>`
            : nothing}
          <button class="quiet" aria-label="Close" @click=${() => this.close(notice)}>×</button>
        </div>`,
      )}
    </div>`;
  }
}
customElements.define("pin-notices", PinNotices);

function notices(): PinNotices | null {
  return document.querySelector("pin-notices");
}

/** Shows a notice. */
export function tell(text: string, action?: Notice["action"]): void {
  notices()?.show(action ? { text, bad: false, action } : { text, bad: false });
}

/** Shows a notice about a failure. */
export function failed(error: unknown): void {
  notices()?.show({ text: error instanceof Error ? error.message : String(error), bad: true });
}
