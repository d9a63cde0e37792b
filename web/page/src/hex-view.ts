// SPDX-License-Identifier: Apache-2.0
// <wb-hex-view>: a page of bytes in hexadecimal and as text, with some of them marked. Reads one page at a time from
// the caller's source. Says what the byte under the pointer or the focus is, if the caller can explain it: arrow keys
// move between bytes, PageUp and PageDown between pages.

import type { Explanation } from "./api.js";
import { button, h, replace } from "./dom.js";
import { engine } from "./engine.js";
import { explanationView, innermost } from "./explanation.js";
import { grouped, plural } from "./format-numbers.js";
import { sentenceOf, session, wasCancelled, type Entry } from "./state.js";

export interface Bytes {
  /** The offset in the file of byte 0 of this range. */
  start: number;
  length: number;
  /** `at` is an offset in the file. */
  read: (at: number, length: number) => Promise<Uint8Array>;
  label: string;
  /** Bytes to tell from the others. */
  changed?: ((at: number) => boolean) | undefined;
  /** What the byte at an offset in the file is. */
  explain?: ((at: number) => Promise<Explanation>) | undefined;
}

/** The pointer must rest this long on a byte, in milliseconds. */
const REST = 60;
const PAGE = 256;
const ROW = 16;

export class HexView extends HTMLElement {
  #bytes: Bytes | null = null;
  #at = 0;
  #marked: number | null = null;
  #turn = 0;
  /** The byte that is in the Tab order. */
  #active = 0;
  #known: Explanation[] = [];
  /** The byte to explain next, while another one is being explained. */
  #wanted: number | null = null;
  /** The byte that the pointer or the focus was on last: explanations of others that come late are not shown. */
  #asked: number | null = null;
  #busy = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #rows: HTMLElement | null = null;
  #said = h("div", { class: "explanation" });

  /** Shows `bytes` from the file offset `at` on; `marked` is a byte to highlight. */
  show(bytes: Bytes, at = bytes.start, marked: number | null = null): void {
    this.#bytes = bytes;
    this.#marked = marked;
    this.#known = [];
    if (bytes.explain) this.#said.replaceChildren(hint());
    void this.#go(at, marked ?? at);
  }

  async #go(at: number, active = at): Promise<void> {
    const bytes = this.#bytes;
    if (!bytes) return;
    const last = bytes.start + Math.max(0, bytes.length - 1);
    const within = Math.min(Math.max(at, bytes.start), last);
    this.#at = within - ((within - bytes.start) % ROW);
    this.#active = Math.min(Math.max(active, this.#at), last);
    this.#turn += 1;
    const turn = this.#turn;
    try {
      const data = await bytes.read(this.#at, Math.min(PAGE, bytes.start + bytes.length - this.#at));
      if (turn === this.#turn) this.#draw(bytes, data);
    } catch (error) {
      if (turn === this.#turn) replace(this, h("p", { class: "error-text" }, sentenceOf(error)));
    }
  }

  #draw(bytes: Bytes, data: Uint8Array): void {
    const end = bytes.start + bytes.length;
    const focused = this.contains(document.activeElement) ? document.activeElement?.getAttribute("data-move") : null;
    const digits = Math.max(4, end.toString(16).length);
    const rows = h("div", { class: "hex", role: "grid", "aria-label": this.#spoken(bytes, data),
      "aria-colcount": ROW + 1, onkeydown: (event: KeyboardEvent) => this.#key(event), onpointerover: (event: PointerEvent) => this.#over(event),
      onfocusin: (event: FocusEvent) => this.#focused(event),
      onclick: (event: MouseEvent) => cellOf(event)?.focus() });
    this.#rows = rows;
    for (let from = 0; from < data.length; from += ROW) rows.append(this.#row(data, from, digits));
    if (data.length === 0) {
      replace(rows, h("div", { role: "row" }, h("span", { role: "gridcell", class: "quiet" }, "No bytes.")));
    }
    const move = (name: string, to: number, off: boolean): HTMLButtonElement =>
      button(name, () => void this.#go(to), "small", { disabled: off, "data-move": name });
    const goto = h("input", { type: "text", inputmode: "numeric", class: "offset-input", "aria-label": "Go to offset",
      placeholder: "offset, 0x…", spellcheck: false, onchange: () => {
        const to = Number(goto.value.replace(/\s/g, ""));
        if (goto.value !== "" && Number.isSafeInteger(to)) void this.#go(to);
      } });
    replace(this, rows, bytes.explain ? this.#said : null, bytes.length > PAGE
      ? h("div", { class: "row hex-moves" },
        move("First", bytes.start, this.#at <= bytes.start), move("Back", this.#at - PAGE, this.#at <= bytes.start),
        move("On", this.#at + PAGE, this.#at + PAGE >= end), move("Last", end - PAGE, this.#at + PAGE >= end), goto,
        h("span", { class: "quiet number" },
          `${grouped(this.#at)} to ${grouped(this.#at + data.length)} of ${grouped(end)}`))
      : null);
    if (focused) this.querySelector<HTMLElement>(`[data-move="${focused}"]`)?.focus();
  }

  #row(data: Uint8Array, from: number, digits: number): HTMLElement {
    const cells = h("span", { class: "hex-bytes", role: "presentation" });
    const text = h("span", { class: "hex-text", "aria-hidden": "true" });
    data.subarray(from, from + ROW).forEach((byte, index) => {
      const at = this.#at + from + index;
      const marked = at === this.#marked ? "marked" : this.#bytes?.changed?.(at) ? "changed" : byte === 0 ? "zero" : "";
      cells.append(h("span", { class: marked, role: "gridcell", "data-at": at, "aria-colindex": index + 2,
        tabindex: at === this.#active ? "0" : "-1" }, byte.toString(16).padStart(2, "0")));
      text.append(h("span", { class: marked, "data-at": at },
        byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·"));
    });
    return h("div", { class: "hex-row", role: "row" },
      h("span", { class: "hex-offset", role: "rowheader", "aria-colindex": 1 },
        (this.#at + from).toString(16).padStart(digits, "0")),
      cells, text);
  }

  #spoken(bytes: Bytes, data: Uint8Array): string {
    const first = [...data.subarray(0, ROW)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const mark = this.#marked === null ? "" : `, byte ${this.#marked} marked`;
    return `${bytes.label}: ${plural(data.length, "byte")} from offset ${this.#at}${mark}; they begin ${first}`;
  }

  #key(event: KeyboardEvent): void {
    const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: ROW, ArrowUp: -ROW, PageDown: PAGE,
      PageUp: -PAGE, Home: -(this.#active - this.#at) % ROW, End: ROW - 1 - ((this.#active - this.#at) % ROW) };
    const by = moves[event.key];
    const bytes = this.#bytes;
    if (by === undefined || !bytes || bytes.length === 0) return;
    event.preventDefault();
    const to = Math.min(Math.max(this.#active + by, bytes.start), bytes.start + bytes.length - 1);
    if (this.#cell(to)) {
      this.#focusOn(to);
      return;
    }
    // A page on or back keeps the place within the page; a step past its edge turns it by a row.
    const page = Math.abs(by) === PAGE ? this.#at + by : by < 0 ? this.#at - ROW : this.#at + ROW;
    void this.#go(page, to).then(() => this.#focusOn(to));
  }

  #cell(at: number): HTMLElement | null {
    return this.#rows?.querySelector<HTMLElement>(`.hex-bytes [data-at="${at}"]`) ?? null;
  }

  #focusOn(at: number): void { (this.#cell(at) ?? this.#cell(this.#active))?.focus(); }

  #focused(event: FocusEvent): void {
    const cell = cellOf(event);
    if (!cell) return;
    this.#cell(this.#active)?.setAttribute("tabindex", "-1");
    this.#active = Number(cell.dataset["at"]);
    cell.setAttribute("tabindex", "0");
    this.#explain(this.#active);
  }

  #over(event: PointerEvent): void {
    const cell = cellOf(event);
    clearTimeout(this.#timer);
    if (cell) this.#timer = setTimeout(() => this.#explain(Number(cell.dataset["at"])), REST);
  }

  /** One byte at a time: of those asked for meanwhile, only the last one is explained. */
  #explain(at: number): void {
    const explain = this.#bytes?.explain;
    if (!explain) return;
    this.#asked = at;
    const known = this.#known.find((found) => covers(found, at));
    if (known) {
      this.#wanted = null;
      this.#tell(known, at);
      return;
    }
    this.#wanted = at;
    if (this.#busy) return;
    void (async () => {
      this.#busy = true;
      try {
        while (this.#wanted !== null) {
          const next: number = this.#wanted;
          this.#wanted = null;
          const found = await explain(next);
          this.#known = [...this.#known.slice(-KNOWN), found];
          if (next === this.#asked) this.#tell(found, next);
        }
      } catch (error) {
        if (!wasCancelled(error)) replace(this.#said, h("p", { class: "error-text" }, sentenceOf(error)));
      } finally {
        this.#busy = false;
      }
    })();
  }

  #tell(found: Explanation, at: number): void {
    const { offset, size } = innermost(found);
    for (const cell of this.#rows?.querySelectorAll<HTMLElement>("[data-at]") ?? []) {
      const here = Number(cell.dataset["at"]);
      cell.classList.toggle("in-field", here >= offset && here < offset + size);
    }
    replace(this.#said, explanationView(found, at));
  }
}

/** How many explanations a view keeps. */
const KNOWN = 64;

const covers = (found: Explanation, at: number): boolean => {
  const { offset, size } = innermost(found);
  return at >= offset && at < offset + size;
};

const cellOf = (event: Event): HTMLElement | null => {
  const cell = (event.target as Element).closest<HTMLElement>("[data-at]");
  // The text beside the bytes stands for them.
  const at = cell?.dataset["at"];
  return at === undefined ? null
    : cell?.closest(".hex")?.querySelector<HTMLElement>(`.hex-bytes [data-at="${at}"]`) ?? null;
};

const hint = (): HTMLElement => h("p", { class: "quiet" },
  "Point at a byte, or move to it with the arrow keys, to see what it is.");

customElements.define("wb-hex-view", HexView);

export function hexView(bytes: Bytes, at?: number, marked: number | null = null): HexView {
  const view = new HexView();
  view.show(bytes, at, marked);
  return view;
}

/** Explains bytes of an entry's file. */
export function explainer(entry: Entry): (at: number) => Promise<Explanation> {
  return async (at) => (await engine()).explain(entry.source, at, 1, { beside: session.beside(entry) });
}

/** The bytes of a file of the browser, read without the core. With its entry, they are explained. */
export function fileBytes(file: File, entry: Entry | null = null): Bytes {
  return { start: 0, length: file.size, label: "Bytes of the file",
    read: async (at, length) => new Uint8Array(await file.slice(at, at + length).arrayBuffer()),
    explain: entry ? explainer(entry) : undefined };
}
