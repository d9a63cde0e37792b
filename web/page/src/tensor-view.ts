// SPDX-License-Identifier: Apache-2.0
// <wb-tensor-view>: one tensor: shape and parts, statistics, histogram, a heat map of a slice, stored bytes, and values
// as a .npy file. Computes statistics of small tensors at once, of large ones on request.

import type { Model, Statistics, TensorInfo, TensorPart } from "./api.js";
import { button, facts, h, replace, tiles } from "./dom.js";
import { download } from "./download.js";
import { failureView } from "./findings.js";
import { grouped, plural, real, shape, size, sizeText } from "./format-numbers.js";
import { HeatMap } from "./heat-map.js";
import { explainer, hexView } from "./hex-view.js";
import { histogramView } from "./histogram.js";
import { Job } from "./job.js";
import { isFolder, session, wasCancelled, type Entry } from "./state.js";
import { storedBytes } from "./tensor-table.js";

/** Tensors up to this many stored bytes are read automatically. */
const AT_ONCE = 32 * 2 ** 20;
const BINS = 64;

export class TensorView extends HTMLElement {
  #job = new Job();

  show(model: Model, place: number): void {
    const tensor = model.tensors[place];
    if (!tensor) return;
    const title = h("h2", { class: "tensor-name", tabindex: "-1" }, tensor.name || "(no name)");
    const close = button("Close", () => this.dispatchEvent(new Event("close")), "small", { title: "Escape" });
    replace(this, h("header", { class: "tensor-head" }, title, close), this.#about(tensor), this.#job);
    const { stored } = tensor;
    if (tensor.scheme?.codes) {
      this.append(h("p", { class: "warning-text" }, `These are codes of ${tensor.scheme.name}, which other tensors ` +
        "complete: they are not the numbers of a weight, and have no statistics."));
    } else if (tensor.supported) this.#measure(model, place, tensor);
    else this.append(h("p", { class: "warning-text" }, tensor.reason ?? "This build does not support this tensor."));
    const all = session.current?.model?.tensors ?? [];
    this.append(this.#parts(stored ? stored.tensors.flatMap((name) => all.find((each) => each.name === name) ?? []) : [tensor]));
    title.focus({ preventScroll: true });
  }

  #about(tensor: TensorInfo): HTMLElement {
    const elements = tensor.shape?.reduce((product, dim) => product * dim, 1);
    return facts([
      ["Dtype", h("code", {}, tensor.dtype)], ["Shape", h("span", { class: "number" }, shape(tensor.shape))],
      ["Elements", elements === undefined ? "unknown" : h("span", { class: "number" }, grouped(elements))],
      ["Layout", h("code", {}, tensor.layout)], ["Stored", sizeText(storedBytes(tensor))],
      ...(tensor.stored ? [["Stored as", `${tensor.stored.name}, of ${plural(tensor.stored.tensors.length, "tensor")}`] as
        [string, string]] : []),
      ...(tensor.scheme ? [["Scheme", tensor.scheme.name] as [string, string]] : []),
      ...Object.entries(tensor.attributes ?? {}).map(([name, value]): [string, HTMLElement] =>
        [name, h("code", {}, attributeText(value))]),
    ], "compact");
  }

  #measure(model: Model, place: number, tensor: TensorInfo): void {
    const figures = h("div", { class: "stack" });
    const measure = (): Promise<void> => this.#try(figures, async () => {
      const { statistics, histogram } = await this.#job.run("Reading the values", async (options) => ({
        statistics: await model.statistics(place, options),
        histogram: await model.histogram(place, BINS, options),
      }));
      const spread = histogram.counts.some((count) => count > 0);
      replace(figures, statisticsView(statistics), spread ? histogramView(histogram) : null);
    });
    const map = h("div", { class: "stack" });
    const draw = (): void => {
      const view = new HeatMap();
      map.replaceChildren(view);
      view.show(model, place);
    };
    const npy = button("Download as .npy", () => void this.#try(figures, async () =>
      download(await this.#job.run("Writing the .npy file", (options) => model.extract(place, options)))));
    this.append(h("section", { class: "stack" }, h("h3", {}, "Values"), figures),
      h("section", { class: "stack" }, h("h3", {}, "Heat map"), map), h("div", { class: "row" }, npy));
    if (storedBytes(tensor) <= AT_ONCE) {
      void measure().then(draw);
      return;
    }
    figures.append(button(`Read the values (${size(storedBytes(tensor))})`, () => void measure()));
    map.append(button("Draw the heat map", draw));
  }

  async #try(place: HTMLElement, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!wasCancelled(error)) place.append(failureView(error));
    }
  }

  /** Of one tensor; or of those that make a weight, with their names. */
  #parts(tensors: readonly TensorInfo[]): HTMLElement {
    const entry = session.current;
    const parts = tensors.flatMap(({ name, shape: dims, parts: each }) => each.map((part) => ({ part, name, dims })));
    return h("section", { class: "stack" }, h("h3", {}, parts.length === 1 ? "Stored part" : "Stored parts"),
      ...parts.map(({ part, name, dims }) => h("div", { class: "part stack" }, tensors.length === 1 ? null
        : facts([["Tensor", h("code", {}, name)], ["Shape", h("span", { class: "number" }, shape(dims))]], "compact"),
      partFacts(part), partBytes(entry, part))));
  }
}

customElements.define("wb-tensor-view", TensorView);

function statisticsView(statistics: Statistics): HTMLElement {
  const number = (value: string): HTMLElement => h("span", { class: "number" }, value);
  return tiles([["Minimum", number(real(statistics.min))], ["Maximum", number(real(statistics.max))],
    ["Mean", number(real(statistics.mean))], ["Zeros", number(grouped(statistics.zeros))],
    ["NaN", number(grouped(statistics.nans))], ["Infinities", number(grouped(statistics.infinities))]]);
}

function partFacts(part: TensorPart): HTMLElement {
  const extent = part.offset === null || part.length === null ? "not in a file"
    : `${grouped(part.offset)} to ${grouped(part.offset + part.length)}`;
  return facts([["Role", h("code", {}, part.role)], ["Dtype", h("code", {}, part.dtype)],
    ["Extent", h("span", { class: "number", title: part.length === null ? null : plural(part.length, "byte") },
      extent)],
    ["Encoding", h("code", {}, part.encoding)],
    ["Digest", part.digest === null ? "none" : h("code", { class: "digest" }, part.digest)]], "compact");
}

function partBytes(entry: Entry | null, part: TensorPart): HTMLElement | null {
  const { offset, length } = part;
  if (!entry || offset === null || length === null || length === 0) return null;
  if (isFolder(entry.source)) return h("p", { class: "quiet" }, "The bytes of files in a folder are not shown here.");
  const file = entry.source;
  return hexView({ start: offset, length, label: `Bytes of ${part.role}`,
    read: async (at, count) => new Uint8Array(await file.slice(at, at + count).arrayBuffer()),
    explain: explainer(entry) });
}

/** An attribute's value as text; a nested value as JSON, with integers of any size. */
export function attributeText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "bigint") return String(value);
  return JSON.stringify(value, (_, inner: unknown) => (typeof inner === "bigint" ? String(inner) : inner)) ?? "";
}
