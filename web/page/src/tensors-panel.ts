// SPDX-License-Identifier: Apache-2.0
// <wb-tensors-panel>: the table of tensors, and the open tensor beside it, or in its place if the page is narrow.
// Escape closes the tensor and returns to its row. Of quantized weights it shows the numbers, or the stored tensors if
// they are asked for; and it takes what the files leave open of their schemes.

import type { Model } from "./api.js";
import { changeList } from "./convert-panel.js";
import { button, field, h, replace } from "./dom.js";
import { failureView } from "./findings.js";
import { besideTable } from "./grid-table.js";
import { Job } from "./job.js";
import { session, wasCancelled, type Entry } from "./state.js";
import { TensorTable } from "./tensor-table.js";
import { TensorView } from "./tensor-view.js";

export class TensorsPanel extends HTMLElement {
  #job = new Job();
  #pair = h("div", { class: "split" });

  show(entry: Entry, model: Model, numbers: Model): void {
    const quantized = model.inspection.schemes !== undefined;
    const stored = h("input", { type: "checkbox", name: "stored",
      onchange: () => this.#draw(stored.checked ? model : numbers) });
    replace(this, quantized && numbers !== model ? h("label", { class: "check" }, stored,
      h("span", {}, "Show the stored tensors: codes, and what completes them")) : null,
    this.#pair, quantized ? this.#question(entry, model, numbers) : null);
    this.#draw(numbers);
  }

  #draw(model: Model): void {
    const table = new TensorTable();
    besideTable(this.#pair, table, "The open tensor", (place) => {
      const view = new TensorView();
      return { view, show: () => view.show(model, place) };
    });
    table.items = model.tensors;
  }

  /** What the files leave open of the schemes, and why codes are not decoded. */
  #question(entry: Entry, model: Model, numbers: Model): HTMLElement {
    const open = numbers.tensors.some(({ scheme }) => scheme?.codes === true);
    const reasons = h("div", { class: "stack" });
    const said = h("div", { "aria-live": "polite" });
    const input = h("input", { type: "text", name: "scheme", spellcheck: false, value: entry.scheme.join(" ") });
    const answer = async (): Promise<void> => {
      replace(said);
      try {
        await this.#job.run("Opening", (options) =>
          session.answer(entry, input.value.split(/\s+/).filter((text) => text !== ""), options));
      } catch (error) {
        if (!wasCancelled(error)) replace(said, failureView(error));
      }
    };
    if (open) void this.#reasons(reasons, model);
    return h("details", { class: "card", open }, h("summary", {}, open ? "Quantized weights that are not decoded"
      : "Read the quantization another way"),
    h("form", { class: "stack", onsubmit: (event: Event) => {
      event.preventDefault();
      void answer();
    } }, reasons, field("Scheme", input, "what the files leave open, as --scheme of the command takes it: gptq:zeros=v1, " +
      "fp8:block=128x128, mlx:mode=affine,group=64"),
    h("div", { class: "row" }, button("Open with this", () => void answer())), this.#job, said));
  }

  async #reasons(place: HTMLElement, model: Model): Promise<void> {
    try {
      const plan = await model.plan("safetensors", { dequantize: "auto" });
      replace(place, changeList(plan.blockers.filter(({ kind }) => kind === "unsupported")));
      await plan.close();
    } catch (error) {
      replace(place, failureView(error));
    }
  }
}

customElements.define("wb-tensors-panel", TensorsPanel);
