// An approval request: the proposed change, and the user's answer.

import { LitElement, html, nothing } from "lit";
import type { TemplateResult } from "lit";
import { api } from "./api.ts";
import "./diff-view.ts";
import { failed } from "./notice.ts";
import { timeOf, visible } from "./text.ts";
import type { AnswerKind, ApprovalRequest } from "./types.ts";

export class PinRequest extends LitElement {
  static override properties = {
    request: { attribute: false },
    current: { attribute: false },
    ready: { attribute: false },
    denying: { state: true },
    sent: { state: true },
  };

  declare request: ApprovalRequest;
  /** Whether the keyboard answers this request. */
  current = false;
  /** Whether the request has been in its place for long enough that a key or a click is meant for it. */
  ready = false;
  /** Whether the user is writing the reason for a denial. */
  denying = false;
  sent = false;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  /** Answers the request. */
  answer(answer: AnswerKind): void {
    if (this.sent || !this.ready || !this.request.answers.includes(answer)) return;
    const message = answer === "no" ? this.querySelector("textarea")?.value : undefined;
    this.sent = true;
    api.answer(this.request.server, this.request.request, answer, message).catch((error: unknown) => {
      this.sent = false;
      failed(error);
    });
  }

  /** Lets the user write the reason. */
  deny(): void {
    if (this.sent || !this.ready) return;
    this.denying = true;
    void this.updateComplete.then(() => this.querySelector("textarea")?.focus());
  }

  private get isWhole(): boolean {
    return this.request.diff !== undefined || !/^… .* not shown …$|… \[?\+?[\d,]+ characters/m.test(this.request.preview);
  }

  /** Requests the whole diff, unless it is shown already. */
  showWhole(): void {
    if (this.isWhole) return;
    api.wholeDiff(this.request.server, this.request.request).catch(failed);
  }

  protected override render(): TemplateResult {
    const { request } = this;
    const takes = (answer: AnswerKind) => request.answers.includes(answer);
    const text = request.diff ?? request.preview;
    const waits = this.sent || !this.ready;
    const isDiff = /^@@ /m.test(text);
    const [doing, path] = [DOING[request.access] ?? request.access, request.path];
    return html`
      <article class="request ${this.current ? "current" : ""} ${this.ready ? "ready" : ""}" aria-label="Approval request: ${doing} ${path}">
        <h3>Allow ${doing} <code>${path}</code>?</h3>
        <p class="muted">
          ${visible(request.client ?? "An unnamed client")} called <code>${visible(request.tool)}</code> at ${timeOf(request.time)} ·
          session ${visible(request.session)} · ${visible(request.reason)}
        </p>
        ${request.headline.startsWith("The file changed") ? html`<p class="warn">The file changed since the last question.</p>` : nothing}
        ${!text ? nothing : isDiff ? html`<pin-diff .text=${text} .label=${`Change of ${path}`}></pin-diff>` : html`<pre class="preview">${text}</pre>`}
        ${this.isWhole ? nothing : html`<p><button class="quiet" @click=${this.showWhole}>Show the whole diff <kbd>d</kbd></button></p>`}
        <div class="buttons">
          <button class="yes" ?disabled=${waits} @click=${() => this.answer("once")}>Allow once <kbd>y</kbd></button>
          ${takes("session") ? html`<button ?disabled=${waits} @click=${() => this.answer("session")}>Allow for this session <kbd>s</kbd></button>` : nothing}
          ${this.denying
            ? nothing
            : html`<button class="no" ?disabled=${waits} @click=${() => this.answer("no")}>Deny <kbd>n</kbd></button>
                <button class="no" ?disabled=${waits} @click=${this.deny}>Deny with a message… <kbd>m</kbd></button>`}
        </div>
        ${this.denying ? this.renderDenying() : nothing}
      </article>
    `;
  }

  private renderDenying(): TemplateResult {
    const keys = (event: KeyboardEvent) => {
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        this.answer("no");
      } else if (event.key === "Escape") this.denying = false;
    };
    return html`<div class="denying">
      <label>Message for the agent <span class="muted">(may be empty)</span>
        <textarea rows="2" maxlength="4000" @keydown=${keys}></textarea>
      </label>
      <div class="buttons">
        <button class="no" ?disabled=${this.sent} @click=${() => this.answer("no")}>Deny <kbd>Enter</kbd></button>
        <button ?disabled=${this.sent} @click=${() => (this.denying = false)}>Back</button>
      </div>
    </div>`;
  }
}
customElements.define("pin-request", PinRequest);

const DOING: Record<string, string> = { Read: "reading", Write: "changing", Delete: "deleting" };
