// SPDX-License-Identifier: Apache-2.0
// <wb-difference-map>: where two tensors differ. The library reduces the tensor to a grid of blocks; a block is one
// square, as strong as its largest difference. Blocks with NaN or infinities in one tensor only are magenta. Arrow keys
// and the pointer read single blocks.

import type { DifferenceMap, DiffOptions, Model } from "./api.js";
import { h, replace } from "./dom.js";
import { failureView } from "./findings.js";
import { grouped, plural, real } from "./format-numbers.js";
import { BROKEN, HeatCanvas, mixed, NEUTRAL, type Color } from "./heat-canvas.js";
import { Job } from "./job.js";
import { wasCancelled } from "./state.js";

/** Blocks on a side: as many as a screen shows apart. */
const GRID = 128;

const MOST: Color = [178, 54, 5];

/** From 0, no difference, to 1, the largest one. Small differences must show, hence the root. */
const color = (part: number): Color => mixed(NEUTRAL, MOST, part > 0 ? 0.12 + 0.88 * Math.sqrt(Math.min(1, part)) : 0);

const number = (value: number | string | null | undefined): number =>
  (typeof value === "number" ? value : value === "inf" ? Infinity : 0);

/** The first row or column of block `at` (types.ts, DifferenceMap). */
const begin = (at: number, of: number, blocks: number): number =>
  Math.floor(of / blocks) * at + Math.floor(((of % blocks) * at) / blocks);

export class DifferenceMapView extends HTMLElement {
  #map: DifferenceMap | null = null;
  #job = new Job();
  #heat = new HeatCanvas((row, column) => this.#words(row, column));

  show(a: Model, b: Model, names: { a: string; b: string }, options: DiffOptions): void {
    replace(this, this.#job);
    void (async () => {
      try {
        const map = await this.#job.run("Comparing block by block", (job) =>
          a.differenceMap(b, names, { high: GRID, wide: GRID }, { ...options, ...job }));
        this.#draw(map);
      } catch (error) {
        if (!wasCancelled(error)) replace(this, failureView(error));
      }
    })();
  }

  #draw(map: DifferenceMap): void {
    this.#map = map;
    const { high, wide } = map;
    if (high * wide === 0) {
      replace(this, h("p", { class: "quiet" }, "No elements to draw."));
      return;
    }
    this.#heat.canvas.style.minBlockSize = "12px";
    const largest = map.maxAbs.reduce((most: number, value) => Math.max(most, number(value)), 0);
    const changed = map.changed.filter((count) => count > 0).length;
    const at = map.maxAbs.findIndex((value) => number(value) === largest);
    const where = `rows ${this.#range(Math.floor(at / wide), map.rows, high)}, ` +
      `columns ${this.#range(at % wide, map.columns, wide)}`;
    const most = largest > 0 ? `; the largest difference, ${real(largest)}, is in ${where}` : "";
    const apart = map.notFinite.reduce((sum, count) => sum + count, 0);
    this.#heat.draw(high, wide, `Heat map of the differences: ${plural(changed, "block")} of ` +
      `${grouped(high * wide)} changed${most}. Arrow keys read single blocks`, (block) =>
      ((map.notFinite[block] ?? 0) > 0 ? BROKEN : color(largest > 0 ? number(map.maxAbs[block]) / largest : 0)));
    this.#heat.tellScale("0", real(largest), color, h("span", { class: "quiet" }, "largest |B − A|"),
      apart > 0 ? h("span", { class: "row" }, h("span", { class: "swatch", "aria-hidden": "true" }),
        `NaN or infinite in one only: ${grouped(apart)}`) : null);
    const block = `Each square is a block of ${plural(Math.ceil(map.rows / high), "row")} by ` +
      `${plural(Math.ceil(map.columns / wide), "column")} at most, as strong as its largest difference.`;
    replace(this, this.#heat.canvas, this.#heat.legend, this.#heat.readout, h("p", { class: "quiet" },
      map.rows > high || map.columns > wide ? block : "Each square is one element."));
    this.#heat.read(Math.floor(at / wide), at % wide);
  }

  #range(at: number, of: number, blocks: number): string {
    const [from, to] = [begin(at, of, blocks), begin(at + 1, of, blocks) - 1];
    return from === to ? grouped(from) : `${grouped(from)} to ${grouped(to)}`;
  }

  #words(i: number, j: number): string {
    const map = this.#map as DifferenceMap;
    const at = i * map.wide + j;
    const size = (begin(i + 1, map.rows, map.high) - begin(i, map.rows, map.high)) *
      (begin(j + 1, map.columns, map.wide) - begin(j, map.columns, map.wide));
    const apart = map.notFinite[at] ?? 0;
    const odd = apart > 0 ? `, ${grouped(apart)} not finite` : "";
    return `Rows ${this.#range(i, map.rows, map.high)}, columns ` +
      `${this.#range(j, map.columns, map.wide)}: largest |B − A| ${real(map.maxAbs[at] ?? null)}, ` +
      `${grouped(map.changed[at] ?? 0)} of ${grouped(size)} changed${odd}`;
  }
}

customElements.define("wb-difference-map", DifferenceMapView);
