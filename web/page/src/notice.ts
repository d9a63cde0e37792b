// SPDX-License-Identifier: Apache-2.0
// <wb-notices>: messages about the page itself (a lost worker, a refused file). Errors stay until they are dismissed,
// the others disappear. Findings about a file are shown with the file, not here.

import { button, h } from "./dom.js";

const LINGER = 8000;

export class Notices extends HTMLElement {
  connectedCallback(): void {
    this.setAttribute("role", "status");
    this.setAttribute("aria-live", "polite");
  }

  show(text: string, kind: "info" | "error" = "info"): void {
    const notice = h("div", { class: `notice ${kind}` }, h("p", {}, text));
    notice.append(button("Dismiss", () => notice.remove(), "quiet"));
    this.append(notice);
    if (kind === "info") setTimeout(() => notice.remove(), LINGER);
  }
}

customElements.define("wb-notices", Notices);

export function notify(text: string, kind: "info" | "error" = "info"): void {
  document.querySelector<Notices>("wb-notices")?.show(text, kind);
}
