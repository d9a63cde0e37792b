// SPDX-License-Identifier: Apache-2.0
// <wb-heat-map>: a window on a two-dimensional slice of a tensor, one square per element. Number fields choose the
// leading indices. Colors run from blue through neutral at zero to orange; NaN and infinities are magenta.

import type { Model, TensorInfo } from "./api.js";
import { field, h, replace } from "./dom.js";
import { grouped, plural, real } from "./format-numbers.js";
import { BROKEN, HeatCanvas, mixed, NEUTRAL, type Color } from "./heat-canvas.js";
import { sentenceOf } from "./state.js";

const WINDOW = 128;
/** The most elements fetched for one window; the core returns whole rows of the slowest dimension. */
const MOST = 16 * 2 ** 20;
/** A tensor of one dimension is wrapped at this many columns. */
const WRAP = 64;

interface Slice {
  rows: number;
  columns: number;
  firstRow: number;
  firstColumn: number;
  values: Float32Array;
  wide: number;
  high: number;
}

const COLD: Color = [33, 102, 172];
const HOT: Color = [203, 93, 12];

/** Maps -1 to 1 to a color; a value that is not finite has its own. */
const color = (value: number): Color => (Number.isFinite(value)
  ? mixed(NEUTRAL, value < 0 ? COLD : HOT, Math.min(1, Math.abs(value)) ** 0.8) : BROKEN);

export class HeatMap extends HTMLElement {
  #model: Model | null = null;
  #tensor: TensorInfo | null = null;
  #place = 0;
  #leading: number[] = [];
  #slice: Slice | null = null;
  #turn = 0;
  #heat = new HeatCanvas((row, column) => this.#words(row, column));
  #controls = h("div", { class: "row controls" });

  /** `place` is the tensor's index in the model's list, because names need not be unique. */
  show(model: Model, place: number): void {
    this.#model = model;
    this.#place = place;
    this.#tensor = model.tensors[place] ?? null;
    const dims = this.#tensor?.shape ?? [];
    this.#leading = dims.slice(0, -2).map(() => 0);
    this.replaceChildren(this.#controls, this.#heat.canvas, this.#heat.legend, this.#heat.readout);
    if (dims.includes(0)) {
      replace(this, h("p", { class: "quiet" }, "No elements to draw."));
      return;
    }
    this.#drawControls();
    void this.#load(0, 0);
  }

  get #size(): [number, number] {
    const dims = this.#tensor?.shape ?? [];
    if (dims.length < 2) {
      const count = dims[0] ?? 1;
      return [Math.ceil(count / WRAP), Math.min(count, WRAP)];
    }
    return [dims[dims.length - 2] as number, dims[dims.length - 1] as number];
  }

  #number(label: string, value: number, below: number, change: (value: number) => void): HTMLElement {
    const input = h("input", { type: "number", min: 0, max: Math.max(0, below - 1), value, class: "index-input" });
    input.addEventListener("change", () => {
      const wanted = Math.min(Math.max(0, Math.trunc(Number(input.value) || 0)), Math.max(0, below - 1));
      input.value = String(wanted);
      change(wanted);
    });
    return field(label, input);
  }

  #drawControls(): void {
    const dims = this.#tensor?.shape ?? [];
    const [rows, columns] = this.#size;
    const at = { row: 0, column: 0 };
    replace(this.#controls,
      ...this.#leading.map((value, axis) => this.#number(`Index ${axis} of ${grouped(dims[axis] ?? 0)}`, value,
        dims[axis] ?? 1, (index) => { this.#leading[axis] = index; void this.#load(at.row, at.column); })),
      rows > WINDOW ? this.#number(`First row of ${grouped(rows)}`, 0, rows, (row) => {
        at.row = row;
        void this.#load(row, at.column);
      }) : null,
      columns > WINDOW ? this.#number(`First column of ${grouped(columns)}`, 0, columns, (column) => {
        at.column = column;
        void this.#load(at.row, column);
      }) : null);
  }

  async #load(firstRow: number, firstColumn: number): Promise<void> {
    this.#turn += 1;
    const turn = this.#turn;
    try {
      const slice = await this.#fetch(firstRow, firstColumn);
      if (turn !== this.#turn) return;
      this.#slice = slice;
      this.#draw(slice);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#heat.canvas.hidden = true;
      replace(this.#heat.legend);
      this.#heat.readout.textContent = sentenceOf(error);
    }
  }

  /** Cuts the window out of the whole rows that the core returns. */
  async #fetch(firstRow: number, firstColumn: number): Promise<Slice> {
    const model = this.#model as Model;
    const dims = this.#tensor?.shape ?? [];
    const [rows, columns] = this.#size;
    const high = Math.min(WINDOW, rows - firstRow);
    const wide = Math.min(WINDOW, columns - firstColumn);
    const values = new Float32Array(high * wide).fill(NaN);
    if (dims.length < 2) {
      const count = Math.min(dims[0] ?? 1, (firstRow + high) * WRAP) - firstRow * WRAP;
      const data = await model.rows(this.#place, firstRow * WRAP, count);
      values.set(data.subarray(0, values.length));
      return { rows, columns, firstRow, firstColumn, values, high, wide };
    }
    const whole = dims.slice(1).reduce((product, dim) => product * dim, 1);
    const fetched = dims.length === 2 ? high : 1;
    if (whole * fetched > MOST) {
      throw new Error(`One row of this tensor has ${plural(whole, "element")}: too many to draw. Download it instead.`);
    }
    const from = dims.length === 2 ? firstRow : this.#leading[0] as number;
    const data = await model.rows(this.#place, from, fetched);
    const inner = this.#leading.slice(1).reduce((sum, index, axis) => sum * (dims[axis + 1] as number) + index, 0);
    const start = dims.length === 2 ? 0 : (inner * rows + firstRow) * columns;
    for (let row = 0; row < high; row += 1) {
      const at = start + row * columns + firstColumn;
      values.set(data.subarray(at, at + wide), row * wide);
    }
    return { rows, columns, firstRow, firstColumn, values, high, wide };
  }

  #draw(slice: Slice): void {
    const { values, high, wide } = slice;
    const finite = values.filter(Number.isFinite);
    const bound = finite.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const lowest = finite.reduce((least, value) => Math.min(least, value), Infinity);
    this.#heat.draw(high, wide, `Heat map: rows ${slice.firstRow} to ${slice.firstRow + high - 1}, columns ` +
      `${slice.firstColumn} to ${slice.firstColumn + wide - 1}; arrow keys read single elements`, (at) => {
      const value = values[at] as number;
      return this.#isPadding(slice, at) ? null : color(bound > 0 ? value / bound : value);
    });
    this.#heat.tellScale(real(-bound), real(bound), (part) => color(part * 2 - 1),
      lowest === Infinity ? h("span", { class: "quiet" }, "no finite value in this window") : null);
    this.#heat.read(0, 0);
  }

  /** The end of the last row of a wrapped tensor has no elements. */
  #isPadding(slice: Slice, at: number): boolean {
    const dims = this.#tensor?.shape ?? [];
    return dims.length < 2 && slice.firstRow * WRAP + at >= (dims[0] ?? 1);
  }

  #words(row: number, column: number): string {
    const slice = this.#slice as Slice;
    const place = row * slice.wide + column;
    const index = (this.#tensor?.shape ?? []).length < 2 ? [(slice.firstRow + row) * WRAP + column]
      : [...this.#leading, slice.firstRow + row, slice.firstColumn + column];
    return this.#isPadding(slice, place) ? "\u00a0" : `[${index.join(", ")}] = ${real(slice.values[place] ?? NaN)}`;
  }
}

customElements.define("wb-heat-map", HeatMap);
