// SPDX-License-Identifier: Apache-2.0
// <wb-tensors-panel>: the table of tensors, and the open tensor beside it, or in its place if the page is narrow.
// Escape closes the tensor and returns to its row.

import type { Model } from "./api.js";
import { h } from "./dom.js";
import { TensorTable } from "./tensor-table.js";
import { TensorView } from "./tensor-view.js";

export class TensorsPanel extends HTMLElement {
  #table = new TensorTable();
  #side = h("aside", { class: "tensor-side", "aria-label": "The open tensor", hidden: true });

  show(model: Model): void {
    this.replaceChildren(this.#table, this.#side);
    this.#table.tensors = model.tensors;
    this.#table.addEventListener("tensor", (event) => this.#open(model, (event as CustomEvent<number>).detail));
    this.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.#side.hidden) return;
      event.preventDefault();
      this.#close();
    });
  }

  #open(model: Model, place: number): void {
    const view = new TensorView();
    view.addEventListener("close", () => this.#close());
    this.#side.hidden = false;
    this.toggleAttribute("data-open", true);
    this.#side.replaceChildren(view);
    this.#side.scrollTop = 0;
    view.show(model, place);
  }

  #close(): void {
    this.#side.hidden = true;
    this.#side.replaceChildren();
    this.toggleAttribute("data-open", false);
    this.#table.mark(-1);
    this.#table.focusRow();
  }
}

customElements.define("wb-tensors-panel", TensorsPanel);
