// SPDX-License-Identifier: Apache-2.0
// <wb-byte-map>: the file as a ruler with a scale of offsets. Tensors are filled, the header and gaps are plain, and
// the first finding has a mark. The line below names what is under the pointer.

import type { Finding, TensorInfo } from "./api.js";
import { h } from "./dom.js";
import { grouped, size } from "./format-numbers.js";

interface Extent {
  from: number;
  to: number;
  name: string;
}

const HEIGHT = 28;

export class ByteMap extends HTMLElement {
  #extents: Extent[] = [];
  #length = 0;
  #mark: number | null = null;
  #canvas = h("canvas", { class: "byte-map", role: "img" });
  #readout = h("p", { class: "readout number" }, "\u00a0");
  #watch = new ResizeObserver(() => this.#draw());

  connectedCallback(): void { this.#watch.observe(this.#canvas); }
  disconnectedCallback(): void { this.#watch.disconnect(); }

  show(length: number, tensors: readonly TensorInfo[], findings: readonly Finding[]): void {
    this.#length = length;
    this.#extents = tensors.flatMap(({ name, parts }) => parts.flatMap(({ offset, length: bytes, source }) =>
      (offset === null || bytes === null || source !== undefined ? [] : [{ from: offset, to: offset + bytes, name }])))
      .sort((a, b) => a.from - b.from);
    this.#mark = findings.find((finding) => finding.offset !== null && finding.file === null)?.offset ?? null;
    const payload = this.#extents.reduce((sum, { from, to }) => sum + to - from, 0);
    const words = `Map of the file: ${size(payload)} of ${size(length)} are tensors`;
    this.#canvas.setAttribute("aria-label", this.#mark === null ? words : `${words}; a finding at byte ${this.#mark}`);
    this.#canvas.onpointermove = (event) => this.#read(event);
    this.#canvas.onpointerleave = () => { this.#readout.textContent = "\u00a0"; };
    this.replaceChildren(this.#canvas, h("div", { class: "axis number" }, h("span", {}, "0"),
      h("span", {}, grouped(length))), this.#readout);
    this.#draw();
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
    const x = (at: number): number => (at / this.#length) * width;
    let drawn = -1;
    this.#extents.forEach(({ from, to }, index) => {
      const right = Math.max(x(to), x(from) + 0.5);
      if (right <= drawn + 0.25) return; // below the screen's resolution; keeps 100,000 tensors as fast as a thousand
      drawn = right;
      context.globalAlpha = index % 2 === 0 ? 0.85 : 0.55;
      context.fillStyle = style.color;
      context.fillRect(x(from), 4, right - x(from), HEIGHT - 12);
    });
    context.globalAlpha = 1;
    context.fillStyle = style.borderTopColor;
    for (let tick = 0; tick <= 20; tick += 1) {
      context.fillRect(Math.min(width - 1, (tick * width) / 20), HEIGHT - 7, 1, tick % 5 === 0 ? 7 : 4);
    }
    if (this.#mark === null) return;
    context.fillStyle = style.outlineColor;
    context.fillRect(Math.min(width - 2, Math.max(0, x(this.#mark) - 1)), 0, 2, HEIGHT);
  }

  #read(event: PointerEvent): void {
    const box = this.#canvas.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * this.#length);
    const inside = this.#extents.find(({ from, to }) => at >= from && at < to);
    this.#readout.textContent = `${grouped(Math.max(0, at))}: ${inside?.name ?? "header, or a gap"}`;
  }
}

customElements.define("wb-byte-map", ByteMap);
