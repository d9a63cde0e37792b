// SPDX-License-Identifier: Apache-2.0
// <wb-byte-map>: the file as a bar with a scale of offsets. Tensors have the color of their dtype, which the legend names;
// the header and gaps are plain, and the first finding has a mark. The line below names the tensor under the pointer; arrow
// keys go from tensor to tensor.

import type { Finding, Inspection, Model, TensorInfo } from "./api.js";
import { h, replace } from "./dom.js";
import { grouped, shape, share, size } from "./format-numbers.js";
import { cut } from "./long-name.js";

interface Extent {
  from: number;
  to: number;
  kind: string;
  tensor: TensorInfo;
}

const HEIGHT = 28;
/** Colors of style.css, .type-0 and so on; the last is for all further dtypes. */
const COLORS = 7;
const PLAIN = "\u00a0";

export class ByteMap extends HTMLElement {
  #extents: Extent[] = [];
  #colors = new Map<string, number>();
  #length = 0;
  #mark: number | null = null;
  #at = -1;
  #canvas = h("canvas", { class: "byte-map", role: "img", tabindex: "0",
    onpointermove: (event: PointerEvent) => this.#point(event), onpointerleave: () => this.#tell(-1),
    onkeydown: (event: KeyboardEvent) => this.#key(event), onblur: () => this.#tell(-1) });
  #pointed = h("div", { class: "byte-pointed", hidden: true });
  #legend = h("ul", { class: "legend", "aria-label": "Dtypes by size" });
  #readout = h("p", { class: "readout number", "aria-live": "polite" }, PLAIN);
  #watch = new ResizeObserver(() => this.#draw());
  readonly #redraw = (): void => this.#draw();

  connectedCallback(): void {
    this.#watch.observe(this.#canvas);
    document.addEventListener("theme", this.#redraw);
  }
  disconnectedCallback(): void {
    this.#watch.disconnect();
    document.removeEventListener("theme", this.#redraw);
  }

  /** `stored` has the tensors of the files, `numbers` those that people see; `length` is the size of the file, if it is one. */
  show(length: number | null, stored: Model, numbers: Model, findings: readonly Finding[]): void {
    const { starts, end } = placesOf(stored.inspection);
    const schemes = new Map(numbers.tensors.flatMap(({ stored: weight }) =>
      weight?.tensors.map((name): [string, string] => [name, weight.name]) ?? []));
    this.#extents = stored.tensors.flatMap((tensor) => tensor.parts.flatMap(({ offset, length: bytes, source = 0 }) => {
      if (offset === null || bytes === null) return [];
      const from = (starts[source] ?? 0) + offset;
      return [{ from, to: from + bytes, kind: schemes.get(tensor.name) ?? tensor.dtype, tensor }];
    })).sort((a, b) => a.from - b.from);
    this.#length = end ?? length ?? this.#extents.reduce((most, { to }) => Math.max(most, to), 0);
    this.#mark = end !== null || length === null ? null
      : findings.find((finding) => finding.offset !== null && finding.file === null)?.offset ?? null;
    const payload = this.#extents.reduce((sum, { from, to }) => sum + to - from, 0);
    const words = `Map of the file: ${size(payload)} of ${size(this.#length)} are tensors. Arrow keys read each`;
    this.#canvas.setAttribute("aria-label", this.#mark === null ? words : `${words}; a finding at byte ${this.#mark}`);
    const { dtypes } = numbers.inspection;
    const all = dtypes.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#colors = new Map(dtypes.map(({ dtype }, at) => [dtype, Math.min(at, COLORS - 1)]));
    replace(this.#legend, ...dtypes.slice(0, COLORS - 1).map(({ dtype, bytes }, at) => entry(at, dtype, share(bytes, all))),
      dtypes.length >= COLORS ? entry(COLORS - 1, `${grouped(dtypes.length - COLORS + 1)} more`,
        share(dtypes.slice(COLORS - 1).reduce((sum, { bytes }) => sum + bytes, 0), all)) : null,
      entry("none", "header and gaps", ""));
    replace(this, h("div", { class: "byte-bar" }, this.#canvas, this.#pointed),
      h("div", { class: "axis number" }, h("span", {}, "0"), h("span", {}, grouped(this.#length))), this.#legend, this.#readout);
    this.#tell(-1);
    this.#draw();
  }

  /** The color of a kind, as the legend shows it. */
  #color(kind: string): string {
    const swatch = this.#legend.querySelector(`.type-${this.#colors.get(kind) ?? COLORS - 1}`);
    return swatch ? getComputedStyle(swatch).backgroundColor : getComputedStyle(this.#canvas).color;
  }

  #draw(): void {
    const width = this.#canvas.clientWidth;
    const context = this.#canvas.getContext("2d");
    if (!context || width === 0 || this.#length === 0) return;
    const ratio = globalThis.devicePixelRatio || 1;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = HEIGHT * ratio;
    context.scale(ratio, ratio);
    const style = getComputedStyle(this.#canvas);
    const colors = new Map([...this.#colors.keys()].map((kind) => [kind, this.#color(kind)]));
    const x = (at: number): number => (at / this.#length) * width;
    let drawn = -1;
    for (const { from, to, kind } of this.#extents) {
      const right = Math.max(x(to), x(from) + 0.5);
      if (right <= drawn + 0.25) continue; // below the screen's resolution; keeps 100,000 tensors as fast as a thousand
      drawn = right;
      context.fillStyle = colors.get(kind) ?? style.color;
      const wide = right - x(from);
      context.fillRect(x(from), 4, wide > 4 ? wide - 1 : wide, HEIGHT - 12); // a line between tensors that have room for one
    }
    context.fillStyle = style.borderTopColor;
    for (let tick = 0; tick <= 20; tick += 1) {
      context.fillRect(Math.min(width - 1, (tick * width) / 20), HEIGHT - 7, 1, tick % 5 === 0 ? 7 : 4);
    }
    if (this.#mark === null) return;
    context.fillStyle = style.textDecorationColor;
    context.fillRect(Math.min(width - 2, Math.max(0, x(this.#mark) - 1)), 0, 2, HEIGHT);
  }

  #point(event: PointerEvent): void {
    const box = this.#canvas.getBoundingClientRect();
    const at = Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * this.#length));
    const inside = this.#extents.findIndex(({ from, to }) => at >= from && at < to);
    this.#tell(inside, `${grouped(at)}: header, or a gap`);
  }

  #key(event: KeyboardEvent): void {
    const last = this.#extents.length - 1;
    const moves: Record<string, number> = { ArrowRight: this.#at + 1, ArrowLeft: Math.max(0, this.#at - 1), Home: 0, End: last };
    const to = moves[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#tell(Math.min(to, last));
  }

  /** Names the tensor of an extent, and frames it in the bar; without one, says `words`. */
  #tell(at: number, words = PLAIN): void {
    this.#at = at;
    const extent = this.#extents[at];
    this.#pointed.hidden = extent === undefined;
    if (!extent) {
      this.#readout.textContent = words;
      return;
    }
    const { from, to, kind, tensor } = extent;
    this.#pointed.style.insetInlineStart = `${(100 * from) / this.#length}%`;
    this.#pointed.style.inlineSize = `${(100 * (to - from)) / this.#length}%`;
    this.#readout.textContent = `${grouped(from)}: ${cut(tensor.name, 120)}, ${kind}, ${shape(tensor.shape)}, ${size(to - from)}`;
  }
}

customElements.define("wb-byte-map", ByteMap);

/** Where each file begins if all lie end to end, and where the last ends; no end for a single file. */
function placesOf({ sources }: Inspection): { starts: number[]; end: number | null } {
  let end = 0;
  const starts = (sources ?? []).map((source) => (end += source.size) - source.size);
  return { starts, end: sources ? end : null };
}

const entry = (color: number | string, name: string, part: string): HTMLElement =>
  h("li", {}, h("span", { class: `swatch type-${color}` }), " ", cut(name, 60), part ? ` ${part}` : null);
