// SPDX-License-Identifier: Apache-2.0
// <wb-difference-view>: one tensor in both models: what it is in each, how its values changed, and where.

import type { ComparedTensor, DiffOptions, Model, TensorDiff, ValueDiff } from "./api.js";
import { DifferenceMapView } from "./difference-map.js";
import { cosine, decibels, kindsOf, nameOf, placeText, share } from "./difference-table.js";
import { button, facts, h, replace, tiles, type Child } from "./dom.js";
import { grouped, real, shape, size } from "./format-numbers.js";
import { storedBytes } from "./tensor-table.js";

/** Tensors up to this many stored bytes in both files are mapped at once. */
const AT_ONCE = 32 * 2 ** 20;

export class DifferenceView extends HTMLElement {
  show(a: Model, b: Model, tensor: TensorDiff, options: DiffOptions): void {
    const title = h("h2", { class: "tensor-name", tabindex: "-1" }, nameOf(tensor) || "(no name)");
    const close = button("Close", () => this.dispatchEvent(new Event("close")), "small", { title: "Escape" });
    replace(this, h("header", { class: "tensor-head" }, title, close),
      h("p", { class: "row" }, ...kindsOf(tensor).map((kind) => h("span", { class: "badge absent" }, kind))),
      sides(tensor), this.#remarks(tensor));
    if (tensor.values) {
      this.append(h("section", { class: "stack" }, h("h3", {}, "How the values changed"),
        valuesView(tensor.values, tensor.a?.shape ?? [])));
      this.append(this.#map(a, b, tensor, options) ?? "");
    }
    title.focus({ preventScroll: true });
  }

  #remarks({ by, why, tiedTo: tied, order, verdict }: TensorDiff): HTMLElement | null {
    const words = [
      by === "content" ? "The partner was found by its values: the names differ." : "",
      by === "guess" ? "The partner is a guess: by its shape or the end of its name." : "",
      tied ? `The other model has its content in ${tied}.` : "",
      order ? `The order of the rows: ${order}.` : "",
      why ? `${verdict === "incomparable" ? "It cannot be compared: " : ""}${why}.` : "",
    ].filter(Boolean);
    return words.length > 0 ? h("p", {}, words.join(" ")) : null;
  }

  #map(a: Model, b: Model, tensor: TensorDiff, options: DiffOptions): HTMLElement | null {
    const section = h("section", { class: "stack" }, h("h3", {}, "Where it changed"));
    const none = (words: string): HTMLElement => {
      section.append(h("p", { class: "quiet" }, words));
      return section;
    };
    if (!tensor.a || !tensor.b) return null;
    if (tensor.changes.includes("transposed")) return none("A transposed tensor has no map.");
    if (tensor.changes.includes("permuted")) return none("A tensor with permuted rows has no map.");
    if (tensor.values?.changed === 0) return none("Nowhere: the values are equal.");
    const names = { a: tensor.a.name, b: tensor.b.name };
    const bytes = [[a, names.a], [b, names.b]].reduce((sum, [model, name]) =>
      sum + ((model as Model).tensors.filter((each) => each.name === name).reduce((all, each) =>
        all + storedBytes(each), 0)), 0);
    const place = h("div", {});
    const draw = (): void => {
      const view = new DifferenceMapView();
      place.replaceChildren(view);
      view.show(a, b, names, options);
    };
    section.append(place);
    if (bytes <= AT_ONCE) draw();
    else place.append(button(`Draw the map (reads ${size(bytes)})`, draw));
    return section;
  }
}

customElements.define("wb-difference-view", DifferenceView);

function sides({ a, b }: TensorDiff): HTMLElement {
  const side = (label: string, tensor: ComparedTensor | null): HTMLElement => h("section", { class: "stack" },
    h("h3", {}, label), tensor === null ? h("p", { class: "quiet" }, "There is no such tensor.")
      : facts([["Name", h("code", {}, tensor.name || "(no name)")], ["Dtype", h("code", {}, tensor.dtype)],
        ["Shape", h("span", { class: "number" }, shape(tensor.shape))]], "compact"));
  return h("div", { class: "pair" }, side("A", a), side("B", b));
}

function valuesView(values: ValueDiff, dims: readonly number[]): HTMLElement {
  const number = (text: string): HTMLElement => h("span", { class: "number" }, text);
  const place = (index: number | null): string => (index === null ? "–" : placeText(index, dims));
  const rows: [string, Child][] = [["Changed", number(`${grouped(values.changed)} of ${grouped(values.elements)}`)],
    ["Share", number(share(values))], ["Max abs", number(real(values.maxAbs))],
    ["Max relative", number(real(values.maxRelative))], ["RMS", number(real(values.rms))],
    ["RMS / RMS of A", number(real(values.relativeRms))], ["Cosine", number(cosine(values))],
    ["SNR", number(`${decibels(values)} dB`)], ["First at", number(place(values.first))],
    ["Largest at", number(place(values.largest))]];
  if (values.nans > 0) rows.push(["NaN in one only", number(grouped(values.nans))]);
  if (values.infinite > 0) rows.push(["Infinite in one only", number(grouped(values.infinite))]);
  if (values.beyond !== values.changed) rows.push(["Beyond tolerance", number(grouped(values.beyond))]);
  return tiles(rows);
}
