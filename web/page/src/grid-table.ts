// SPDX-License-Identifier: Apache-2.0
// A table of any number of items, with search, sorting and one filter. Only visible rows are in the document, so that
// 100,000 items cost no more than twenty. <wb-tensor-table> and <wb-difference-table> say what is in it. Announces the
// chosen item with the event "item".

import { h, replace } from "./dom.js";
import { grouped } from "./format-numbers.js";
import { cut } from "./long-name.js";
import { Cuts } from "./name-cuts.js";

export interface Column<T> {
  key: string;
  label: string;
  /** What the label stands for, if it is short. */
  title?: string;
  numeric?: boolean;
  /** Its text; the column "name" has `names` instead. */
  cell?: (item: T) => HTMLElement | string;
  /** The sort key of the column. */
  rank: (item: T) => string | number;
}

export interface TableKind<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly searchLabel: string;
  readonly filterLabel: string;
  /** The filter's first choice. */
  readonly every: string;
  /** What the search looks at, and the choices of the filter that an item belongs to. */
  readonly names: (item: T) => string;
  readonly kinds: (item: T) => readonly string[];
  /** The number of items that are shown, of how many, and what they come to. */
  readonly count: (shown: readonly T[], all: number) => string;
  readonly none: string;
}

/** Pads digits to one length, so that text comparison orders numbers: layers.2 before layers.10. */
export const padded = (text: string): string => text.replace(/\d+/g, (digits) => digits.padStart(20, "0"));

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0);

/** Browsers fail to lay out boxes above some 16 million pixels; beyond this height, scrolling is scaled. */
const TALLEST = 8_000_000;
const SPARE = 6;


export class GridTable<T> extends HTMLElement {
  readonly #kind: TableKind<T>;
  #items: readonly T[] = [];
  #shown: number[] = [];
  #sort = { key: "", down: false };
  #active = 0;
  #chosen = -1;
  #search = h("input", { type: "search", placeholder: "Search by name", spellcheck: false, autocomplete: "off",
    oninput: () => this.#refresh() });
  #filter = h("select", { onchange: () => this.#refresh() });
  #count = h("span", { class: "quiet number", role: "status", "aria-live": "polite" });
  #head = h("div", { class: "table-head", role: "row", "aria-rowindex": 1 });
  #rows = h("div", { class: "table-rows", role: "presentation" });
  #space = h("div", { class: "table-space", role: "presentation" }, this.#rows);
  #scroll = h("div", { class: "table-scroll", role: "presentation", onscroll: () => this.#draw(),
    onkeydown: (event: KeyboardEvent) => this.#key(event) }, this.#space);
  #grid = h("div", { class: "tensor-grid", role: "grid" }, this.#head, this.#scroll);
  #watch = new ResizeObserver(() => this.#draw());
  #cuts = new Cuts([], 0);
  #pen = h("canvas").getContext("2d");

  constructor(kind: TableKind<T>) {
    super();
    this.#kind = kind;
    this.#search.setAttribute("aria-label", kind.searchLabel);
    this.#filter.setAttribute("aria-label", kind.filterLabel);
    this.#grid.setAttribute("aria-label", kind.label);
    this.#grid.setAttribute("aria-colcount", String(kind.columns.length));
  }

  connectedCallback(): void {
    this.replaceChildren(h("div", { class: "row table-tools" }, this.#search, this.#filter, this.#count), this.#grid);
    this.#watch.observe(this.#scroll);
  }

  disconnectedCallback(): void { this.#watch.disconnect(); }

  set items(items: readonly T[]) {
    this.#items = items;
    this.#cuts = new Cuts([], 0);
    this.#chosen = -1;
    const counts = new Map<string, number>();
    for (const item of items) {
      for (const kind of this.#kind.kinds(item)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    replace(this.#filter, h("option", { value: "" }, this.#kind.every), ...[...counts].sort(([a], [b]) => compare(a, b))
      .map(([kind, count]) => h("option", { value: kind }, `${kind} (${grouped(count)})`)));
    this.#refresh();
  }

  /** Marks an item as the open one; -1 marks none. */
  mark(index: number): void {
    this.#chosen = index;
    this.#draw();
  }

  /** Returns the focus to the active row when the item's view closes. */
  focusRow(): void { this.#focusActive(); }

  #refresh(): void {
    const wanted = this.#search.value.toLowerCase();
    const kind = this.#filter.value;
    this.#shown = [];
    this.#items.forEach((item, index) => {
      const fits = kind === "" || this.#kind.kinds(item).includes(kind);
      if (fits && this.#kind.names(item).toLowerCase().includes(wanted)) this.#shown.push(index);
    });
    const column = this.#kind.columns.find(({ key }) => key === this.#sort.key);
    if (column) {
      const sign = this.#sort.down ? -1 : 1;
      const ranked = this.#shown.map((index) => ({ index, rank: column.rank(this.#at(index)) }));
      ranked.sort((a, b) => sign * compare(a.rank, b.rank) || a.index - b.index);
      this.#shown = ranked.map(({ index }) => index);
    }
    this.#active = 0;
    this.#scroll.scrollTop = 0;
    this.#count.textContent = this.#kind.count(this.#shown.map((index) => this.#at(index)), this.#items.length);
    this.#grid.setAttribute("aria-rowcount", String(this.#shown.length + 1));
    this.#drawHead();
    this.#draw();
  }

  #at(index: number): T { return this.#items[index] as T; }

  #drawHead(): void {
    const active = document.activeElement;
    const focused = this.#head.contains(active) ? active?.getAttribute("data-key") : null;
    replace(this.#head, ...this.#kind.columns.map(({ key, label, title, numeric }) => {
      const sorted = this.#sort.key === key ? (this.#sort.down ? "descending" : "ascending") : "none";
      return h("div", { role: "columnheader", class: `cell ${key}`, "aria-sort": sorted },
        h("button", { type: "button", "data-key": key, title, class: numeric ? "numeric" : "",
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
    this.#lay();
    if (this.#fit()) this.#lay();
  }

  /** Cuts the names anew if their column has another width than before. */
  #fit(): boolean {
    const cell = this.#rows.querySelector(".cell.name");
    if (!cell || !this.#pen || cell.clientWidth === 0) return false;
    const { fontSize, fontFamily } = getComputedStyle(cell);
    this.#pen.font = `${fontSize} ${fontFamily}`;
    const columns = Math.floor((cell.clientWidth - 1) / (this.#pen.measureText("0".repeat(64)).width / 64));
    if (columns === this.#cuts.columns) return false;
    this.#cuts = new Cuts(this.#items.map((item) => cut(this.#kind.names(item))), columns);
    return true;
  }

  #lay(): void {
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
    if (this.#shown.length === 0) elements.push(h("p", { class: "quiet empty" }, this.#items.length === 0
      ? this.#kind.none : "No tensor matches this search."));
    this.#rows.replaceChildren(...elements);
    if (!this.#rows.querySelector('[tabindex="0"]')) this.#rows.firstElementChild?.setAttribute("tabindex", "0");
    if (held) this.#rows.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  #row(place: number): HTMLElement {
    const index = this.#shown[place] as number;
    const item = this.#at(index);
    return h("div", { role: "row", class: "table-row", "aria-rowindex": place + 2, "data-place": place,
      tabindex: place === this.#active ? "0" : "-1", "aria-selected": String(index === this.#chosen),
      onclick: () => { this.#active = place; this.#choose(); } },
      ...this.#kind.columns.map(({ key, cell, numeric }) => {
        if (cell) return h("div", { role: "gridcell", class: `cell ${key}${numeric ? " numeric" : ""}` }, cell(item));
        const name = cut(this.#kind.names(item));
        return h("div", { role: "gridcell", class: `cell ${key}`, dir: "auto", title: name, "aria-label": name || null },
          this.#cuts.of(name));
      }));
  }

  #choose(): void {
    const index = this.#shown[this.#active];
    if (index === undefined) return;
    this.mark(index);
    this.dispatchEvent(new CustomEvent("item", { detail: index }));
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

/**
 * Fills `pair` with a table and, beside it or in its place if the page is narrow, the view of the chosen item. Escape
 * and the view's event "close" return to the item's row.
 */
export function besideTable<T>(pair: HTMLElement, table: GridTable<T>, label: string,
  make: (index: number) => { view: HTMLElement; show: () => void }): void {
  const side = h("aside", { class: "tensor-side", "aria-label": label, hidden: true });
  const shut = (): void => {
    side.hidden = true;
    side.replaceChildren();
    pair.toggleAttribute("data-open", false);
    table.mark(-1);
    table.focusRow();
  };
  table.addEventListener("item", (event) => {
    const { view, show } = make((event as CustomEvent<number>).detail);
    view.addEventListener("close", shut);
    side.hidden = false;
    pair.toggleAttribute("data-open", true);
    side.replaceChildren(view);
    side.scrollTop = 0;
    show();
  });
  pair.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || side.hidden) return;
    event.preventDefault();
    shut();
  });
  pair.replaceChildren(table, side);
}
