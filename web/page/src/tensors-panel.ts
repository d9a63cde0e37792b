// SPDX-License-Identifier: Apache-2.0
// <wb-tensors-panel>: the table of tensors, and the open tensor beside it, or in its place if the page is narrow.
// Escape closes the tensor and returns to its row.

import type { Model } from "./api.js";
import { besideTable } from "./grid-table.js";
import { TensorTable } from "./tensor-table.js";
import { TensorView } from "./tensor-view.js";

export class TensorsPanel extends HTMLElement {
  show(model: Model): void {
    const table = new TensorTable();
    besideTable(this, table, "The open tensor", (place) => {
      const view = new TensorView();
      return { view, show: () => view.show(model, place) };
    });
    table.items = model.tensors;
  }
}

customElements.define("wb-tensors-panel", TensorsPanel);
