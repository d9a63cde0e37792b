// SPDX-License-Identifier: Apache-2.0
// A histogram as SVG: bars over an axis. Shows the values of the bar under the pointer or chosen with the arrow keys.

import type { Histogram } from "./api.js";
import { h, svg } from "./dom.js";
import { grouped, plural, real } from "./format-numbers.js";

const WIDTH = 640;
const HEIGHT = 150;
const AXIS = 8;

export function histogramView(histogram: Histogram): HTMLElement {
  const { counts, from, to } = histogram;
  const most = Math.max(1, ...counts);
  const step = WIDTH / Math.max(1, counts.length);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const edge = (bin: number): number => from + ((to - from) * bin) / counts.length;
  const bars = counts.map((count, bin) => svg("rect", { class: "bar", x: bin * step, width: Math.max(step - 1, 0.5),
    y: HEIGHT - (count / most) * HEIGHT, height: count > 0 ? Math.max(1, (count / most) * HEIGHT) : 0 }));
  const ticks = Array.from({ length: 11 }, (_, index) => svg("line", { class: "tick", x1: (index * WIDTH) / 10,
    x2: (index * WIDTH) / 10, y1: HEIGHT, y2: HEIGHT + (index % 5 === 0 ? AXIS : AXIS / 2) }));
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + AXIS}`, preserveAspectRatio: "none",
    class: "histogram", role: "img", tabindex: "0", "aria-label":
      `Histogram of ${plural(total, "element")} from ${real(from)} to ${real(to)}, ${plural(counts.length, "bin")}` },
    svg("line", { class: "tick", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }), ...ticks, ...bars);
  const readout = h("p", { class: "readout number", "aria-live": "polite" }, "\u00a0");
  let chosen = -1;
  const point = (bin: number): void => {
    bars[chosen]?.classList.remove("chosen");
    chosen = Math.min(counts.length - 1, Math.max(0, bin));
    bars[chosen]?.classList.add("chosen");
    readout.textContent = `${real(edge(chosen))} to ${real(edge(chosen + 1))}: ${grouped(counts[chosen] ?? 0)}`;
  };
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    point(Math.floor(((event.clientX - box.left) / box.width) * counts.length));
  });
  picture.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    point(chosen + by);
  });
  return h("figure", { class: "figure" }, picture, h("div", { class: "axis number" }, h("span", {}, real(from)),
    h("span", {}, real((from + to) / 2)), h("span", {}, real(to))), readout);
}
