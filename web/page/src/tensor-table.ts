// SPDX-License-Identifier: Apache-2.0
// <wb-tensor-table>: the tensors of a model, with search, sorting and filters. Only visible rows are in the document,
// so 100,000 tensors cost no more than twenty. Announces the chosen one with the event "tensor".

import type { TensorInfo } from "./api.js";
import { h, replace } from "./dom.js";
import { grouped, plural, shape, size, sizeText } from "./format-numbers.js";

interface Column {
  key: string;
  label: string;
  numeric?: boolean;
  cell: (tensor: TensorInfo) => HTMLElement | string;
  /** The sort key of the column. */
  rank: (tensor: TensorInfo) => string | number;
}

export const storedBytes = (tensor: TensorInfo): number =>
  tensor.parts.reduce((sum, part) => sum + (part.length ?? 0), 0);

const firstOffset = (tensor: TensorInfo): number =>
  tensor.parts.reduce((first, part) => Math.min(first, part.offset ?? Infinity), Infinity);

/** Pads digits to one length, so that text comparison orders numbers: layers.2 before layers.10. */
const padded = (text: string): string => text.replace(/\d+/g, (digits) => digits.padStart(20, "0"));

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0);

const COLUMNS: Column[] = [
  { key: "name", label: "Name", cell: ({ name }) => name.slice(0, LONGEST_NAME), rank: ({ name }) => padded(name) },
  { key: "dtype", label: "Dtype", cell: (tensor) => tensor.dtype, rank: ({ dtype }) => dtype },
  { key: "shape", label: "Shape", cell: (tensor) => shape(tensor.shape),
    rank: ({ shape: dims }) => padded(dims?.join(" ") ?? "") },
  { key: "size", label: "Size", numeric: true, cell: (tensor) => sizeText(storedBytes(tensor)),
    rank: storedBytes },
  { key: "layout", label: "Layout", cell: (tensor) => (tensor.supported ? tensor.layout : "unsupported"),
    rank: ({ layout }) => layout },
  { key: "offset", label: "Offset", numeric: true,
    cell: (tensor) => (Number.isFinite(firstOffset(tensor)) ? grouped(firstOffset(tensor)) : "–"),
    rank: firstOffset },
];

/** The part of a name that is shown; no screen has room for more. The tensor's view shows all of it. */
const LONGEST_NAME = 500;

/** Browsers fail to lay out boxes above some 16 million pixels; beyond this height, scrolling is scaled. */
const TALLEST = 8_000_000;
const SPARE = 6;

export class TensorTable extends HTMLElement {
  #tensors: readonly TensorInfo[] = [];
  #shown: number[] = [];
  #sort = { key: "", down: false };
  #active = 0;
  #chosen = -1;
  #search = h("input", { type: "search", placeholder: "Search by name", "aria-label": "Search tensors by name",
    spellcheck: false, autocomplete: "off", oninput: () => this.#refresh() });
  #dtype = h("select", { "aria-label": "Filter by dtype", onchange: () => this.#refresh() });
  #count = h("span", { class: "quiet number", role: "status", "aria-live": "polite" });
  #head = h("div", { class: "table-head", role: "row", "aria-rowindex": 1 });
  #rows = h("div", { class: "table-rows", role: "presentation" });
  #space = h("div", { class: "table-space", role: "presentation" }, this.#rows);
  #scroll = h("div", { class: "table-scroll", role: "presentation", onscroll: () => this.#draw(),
    onkeydown: (event: KeyboardEvent) => this.#key(event) }, this.#space);
  #grid = h("div", { class: "tensor-grid", role: "grid", "aria-label": "Tensors", "aria-colcount": COLUMNS.length },
    this.#head, this.#scroll);
  #watch = new ResizeObserver(() => this.#draw());

  connectedCallback(): void {
    this.replaceChildren(h("div", { class: "row table-tools" }, this.#search, this.#dtype, this.#count), this.#grid);
    this.#watch.observe(this.#scroll);
  }

  disconnectedCallback(): void { this.#watch.disconnect(); }

  set tensors(tensors: readonly TensorInfo[]) {
    this.#tensors = tensors;
    this.#chosen = -1;
    const counts = new Map<string, number>();
    for (const tensor of tensors) counts.set(tensor.dtype, (counts.get(tensor.dtype) ?? 0) + 1);
    replace(this.#dtype, h("option", { value: "" }, "Every dtype"), ...[...counts].sort(([a], [b]) => compare(a, b))
      .map(([dtype, count]) => h("option", { value: dtype }, `${dtype} (${grouped(count)})`)));
    this.#refresh();
  }

  /** Marks a tensor as the open one; -1 marks none. */
  mark(index: number): void {
    this.#chosen = index;
    this.#draw();
  }

  /** Returns the focus to the active row when the tensor's view closes. */
  focusRow(): void { this.#focusActive(); }

  #refresh(): void {
    const wanted = this.#search.value.toLowerCase();
    const dtype = this.#dtype.value;
    this.#shown = [];
    this.#tensors.forEach((tensor, index) => {
      const fits = (dtype === "" || tensor.dtype === dtype) && tensor.name.toLowerCase().includes(wanted);
      if (fits) this.#shown.push(index);
    });
    const column = COLUMNS.find(({ key }) => key === this.#sort.key);
    if (column) {
      const sign = this.#sort.down ? -1 : 1;
      const ranked = this.#shown.map((index) => ({ index, rank: column.rank(this.#at(index)) }));
      ranked.sort((a, b) => sign * compare(a.rank, b.rank) || a.index - b.index);
      this.#shown = ranked.map(({ index }) => index);
    }
    this.#active = 0;
    this.#scroll.scrollTop = 0;
    const bytes = this.#shown.reduce((sum, index) => sum + storedBytes(this.#at(index)), 0);
    const all = this.#shown.length === this.#tensors.length;
    this.#count.textContent = all ? `${plural(this.#shown.length, "tensor")}, ${size(bytes)}`
      : `${grouped(this.#shown.length)} of ${plural(this.#tensors.length, "tensor")}, ${size(bytes)}`;
    this.#grid.setAttribute("aria-rowcount", String(this.#shown.length + 1));
    this.#drawHead();
    this.#draw();
  }

  #at(index: number): TensorInfo { return this.#tensors[index] as TensorInfo; }

  #drawHead(): void {
    const active = document.activeElement;
    const focused = this.#head.contains(active) ? active?.getAttribute("data-key") : null;
    replace(this.#head, ...COLUMNS.map(({ key, label, numeric }) => {
      const sorted = this.#sort.key === key ? (this.#sort.down ? "descending" : "ascending") : "none";
      return h("div", { role: "columnheader", class: `cell ${key}`, "aria-sort": sorted },
        h("button", { type: "button", "data-key": key, class: numeric ? "numeric" : "",
          onclick: () => this.#sortBy(key) }, label));
    }));
    if (focused) this.#head.querySelector<HTMLElement>(`[data-key="${focused}"]`)?.focus();
  }

  /** Cycles through ascending, descending and the file's own order. */
  #sortBy(key: string): void {
    if (this.#sort.key !== key) this.#sort = { key, down: false };
    else this.#sort = this.#sort.down ? { key: "", down: false } : { key, down: true };
    this.#refresh();
  }

  get #rowHeight(): number {
    return parseFloat(getComputedStyle(this).getPropertyValue("--row-height")) || 34;
  }

  /** The height of a row, of all rows, and of the element that stands for all of them in the document. */
  #heights(): { row: number; total: number; tall: number } {
    const row = this.#rowHeight;
    const total = this.#shown.length * row;
    return { row, total, tall: Math.min(total, TALLEST) };
  }

  #draw(): void {
    const { row, total, tall } = this.#heights();
    this.#space.style.height = `${tall}px`;
    this.#scroll.style.setProperty("--content", `${Math.max(tall, 2 * row)}px`);
    const view = this.#scroll.clientHeight;
    const scale = tall > view ? (total - view) / (tall - view) : 1;
    const top = this.#scroll.scrollTop * scale;
    const first = Math.max(0, Math.floor(top / row) - SPARE);
    const last = Math.min(this.#shown.length, Math.ceil((top + view) / row) + SPARE);
    const held = this.#rows.contains(document.activeElement);
    this.#rows.style.transform = `translateY(${this.#scroll.scrollTop - top + first * row}px)`;
    const elements: HTMLElement[] = [];
    for (let place = first; place < last; place += 1) elements.push(this.#row(place));
    if (this.#shown.length === 0) elements.push(h("p", { class: "quiet empty" }, this.#tensors.length === 0
      ? "This file holds no tensors." : "No tensor matches this search."));
    this.#rows.replaceChildren(...elements);
    if (!this.#rows.querySelector('[tabindex="0"]')) this.#rows.firstElementChild?.setAttribute("tabindex", "0");
    if (held) this.#rows.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  #row(place: number): HTMLElement {
    const index = this.#shown[place] as number;
    const tensor = this.#at(index);
    return h("div", { role: "row", class: "table-row", "aria-rowindex": place + 2, "data-place": place,
      tabindex: place === this.#active ? "0" : "-1", "aria-selected": String(index === this.#chosen),
      onclick: () => { this.#active = place; this.#choose(); } },
      ...COLUMNS.map(({ key, cell, numeric }) => h("div", { role: "gridcell",
        class: `cell ${key}${numeric ? " numeric" : ""}`,
        title: key === "name" ? tensor.name.slice(0, LONGEST_NAME) : null }, cell(tensor))));
  }

  #choose(): void {
    const index = this.#shown[this.#active];
    if (index === undefined) return;
    this.mark(index);
    this.dispatchEvent(new CustomEvent("tensor", { detail: index }));
  }

  #key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.#scroll.clientHeight / this.#rowHeight) - 1);
    const last = this.#shown.length - 1;
    const moves: Record<string, number> = { ArrowDown: this.#active + 1, ArrowUp: this.#active - 1,
      PageDown: this.#active + page, PageUp: this.#active - page, Home: 0, End: last };
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#choose();
      return;
    }
    const to = moves[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#active = Math.min(last, Math.max(0, to));
    this.#focusActive();
  }

  #focusActive(): void {
    const { row, total, tall } = this.#heights();
    const view = this.#scroll.clientHeight;
    const scale = tall > view ? (total - view) / (tall - view) : 1;
    const top = this.#scroll.scrollTop * scale;
    const want = this.#active * row;
    if (want < top) this.#scroll.scrollTop = want / scale;
    else if (want + row > top + view) this.#scroll.scrollTop = (want + row - view) / scale;
    this.#draw();
    this.#rows.querySelector<HTMLElement>(`[data-place="${this.#active}"]`)?.focus({ preventScroll: true });
  }
}

customElements.define("wb-tensor-table", TensorTable);
