// SPDX-License-Identifier: Apache-2.0
// A grid of colored squares with its legend and a line that reads one square: by the pointer, or by arrow keys. Owns
// the drawing that <wb-heat-map> and <wb-difference-map> share; they say what a square is.

import { h, replace, type Child } from "./dom.js";

export type Color = readonly [number, number, number];

/** Of zero, and of what is not finite. */
export const NEUTRAL: Color = [240, 240, 236];
export const BROKEN: Color = [214, 0, 150];

/** The largest size of a square and the largest width of all, in pixels. */
const CELL = 40;
const WIDEST = 680;
const STEPS = 128;

/** From `from`, at 0, to `to`, at 1. */
export function mixed(from: Color, to: Color, weight: number): Color {
  const part = (at: 0 | 1 | 2): number => Math.round(from[at] + (to[at] - from[at]) * weight);
  return [part(0), part(1), part(2)];
}

export class HeatCanvas {
  readonly canvas = h("canvas", { class: "heat", tabindex: "0", role: "img",
    onpointermove: (event: PointerEvent) => this.#point(event), onkeydown: (event: KeyboardEvent) => this.#key(event) });
  readonly legend = h("div", { class: "legend" });
  readonly readout = h("p", { class: "readout number", "aria-live": "polite" }, "\u00a0");
  readonly #words: (row: number, column: number) => string;
  #high = 0;
  #wide = 0;
  #cursor: [number, number] = [0, 0];

  /** `words` says what the square at a row and a column is. */
  constructor(words: (row: number, column: number) => string) { this.#words = words; }

  /** `color` gives the color of a square, or null for none, by its number; squares go row by row. */
  draw(high: number, wide: number, label: string, color: (at: number) => Color | null): void {
    this.#high = high;
    this.#wide = wide;
    this.canvas.hidden = false;
    this.canvas.width = wide;
    this.canvas.height = high;
    this.canvas.style.aspectRatio = `${wide} / ${high}`;
    this.canvas.style.inlineSize = `min(100%, ${Math.min(wide * CELL, WIDEST)}px, ${(65 * wide) / high}vh)`;
    this.canvas.setAttribute("aria-label", label);
    paint(this.canvas, wide, high, color);
  }

  /** The ends of the scale, whose colors `color` gives for 0 to 1, and what else is to be said. */
  tellScale(least: string, most: string, color: (part: number) => Color, ...more: Child[]): void {
    const scale = h("canvas", { class: "legend-scale", width: STEPS, height: 1, "aria-hidden": "true" });
    paint(scale, STEPS, 1, (at) => color(at / (STEPS - 1)));
    replace(this.legend, h("span", { class: "number" }, least), scale, h("span", { class: "number" }, most), ...more);
  }

  /** Reads the nearest square. */
  read(row: number, column: number): void {
    if (this.#high * this.#wide === 0) return;
    const within = (value: number, count: number): number => Math.min(Math.max(0, value), count - 1);
    this.#cursor = [within(row, this.#high), within(column, this.#wide)];
    this.readout.textContent = this.#words(...this.#cursor);
  }

  #point(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    this.read(Math.floor(((event.clientY - box.top) / box.height) * this.#high),
      Math.floor(((event.clientX - box.left) / box.width) * this.#wide));
  }

  #key(event: KeyboardEvent): void {
    const moves: Record<string, [number, number]> = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1],
      ArrowLeft: [0, -1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    this.read(this.#cursor[0] + move[0], this.#cursor[1] + move[1]);
  }
}

function paint(canvas: HTMLCanvasElement, wide: number, high: number, color: (at: number) => Color | null): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const image = context.createImageData(wide, high);
  for (let at = 0; at < wide * high; at += 1) {
    const square = color(at);
    if (square) image.data.set([...square, 255], at * 4);
  }
  context.putImageData(image, 0, 0);
}
