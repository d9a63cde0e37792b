// SPDX-License-Identifier: Apache-2.0
// <wb-hex-view>: a page of bytes in hexadecimal and as text, with some of them marked. Reads one page at a time from
// the caller's source.

import { button, h, replace } from "./dom.js";
import { grouped, plural } from "./format-numbers.js";
import { sentenceOf } from "./state.js";

export interface Bytes {
  /** The offset in the file of byte 0 of this range. */
  start: number;
  length: number;
  /** `at` is an offset in the file. */
  read: (at: number, length: number) => Promise<Uint8Array>;
  label: string;
}

const PAGE = 256;
const ROW = 16;

export class HexView extends HTMLElement {
  #bytes: Bytes | null = null;
  #at = 0;
  #marked: number | null = null;
  #turn = 0;

  /** Shows `bytes` from the file offset `at` on; `marked` is a byte to highlight. */
  show(bytes: Bytes, at = bytes.start, marked: number | null = null): void {
    this.#bytes = bytes;
    this.#marked = marked;
    void this.#go(at);
  }

  async #go(at: number): Promise<void> {
    const bytes = this.#bytes;
    if (!bytes) return;
    const last = bytes.start + Math.max(0, bytes.length - 1);
    const within = Math.min(Math.max(at, bytes.start), last);
    this.#at = within - ((within - bytes.start) % ROW);
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
    const rows = h("div", { class: "hex", role: "img", tabindex: "0", "aria-label": this.#spoken(bytes, data),
      onkeydown: (event: KeyboardEvent) => this.#key(event) });
    for (let from = 0; from < data.length; from += ROW) rows.append(this.#row(data, from, digits));
    if (data.length === 0) rows.append(h("p", { class: "quiet" }, "No bytes."));
    const move = (name: string, to: number, off: boolean): HTMLButtonElement =>
      button(name, () => void this.#go(to), "small", { disabled: off, "data-move": name });
    const goto = h("input", { type: "text", inputmode: "numeric", class: "offset-input", "aria-label": "Go to offset",
      placeholder: "offset, 0x…", spellcheck: false, onchange: () => {
        const to = Number(goto.value.replace(/\s/g, ""));
        if (goto.value !== "" && Number.isSafeInteger(to)) void this.#go(to);
      } });
    replace(this, rows, bytes.length > PAGE
      ? h("div", { class: "row hex-moves" },
        move("First", bytes.start, this.#at <= bytes.start), move("Back", this.#at - PAGE, this.#at <= bytes.start),
        move("On", this.#at + PAGE, this.#at + PAGE >= end), move("Last", end - PAGE, this.#at + PAGE >= end), goto,
        h("span", { class: "quiet number" },
          `${grouped(this.#at)} to ${grouped(this.#at + data.length)} of ${grouped(end)}`))
      : null);
    if (focused) this.querySelector<HTMLElement>(`[data-move="${focused}"]`)?.focus();
  }

  #row(data: Uint8Array, from: number, digits: number): HTMLElement {
    const cells = h("span", { class: "hex-bytes" });
    const text = h("span", { class: "hex-text" });
    data.subarray(from, from + ROW).forEach((byte, index) => {
      const marked = this.#at + from + index === this.#marked ? "marked" : byte === 0 ? "zero" : "";
      cells.append(h("span", { class: marked }, byte.toString(16).padStart(2, "0")));
      text.append(h("span", { class: marked }, byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·"));
    });
    return h("div", { class: "hex-row" },
      h("span", { class: "hex-offset" }, (this.#at + from).toString(16).padStart(digits, "0")), cells, text);
  }

  #spoken(bytes: Bytes, data: Uint8Array): string {
    const first = [...data.subarray(0, ROW)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const mark = this.#marked === null ? "" : `, byte ${this.#marked} marked`;
    return `${bytes.label}: ${plural(data.length, "byte")} from offset ${this.#at}${mark}; they begin ${first}`;
  }

  #key(event: KeyboardEvent): void {
    const moves: Record<string, number> = { PageDown: PAGE, PageUp: -PAGE, ArrowDown: ROW, ArrowUp: -ROW };
    const by = moves[event.key];
    const bytes = this.#bytes;
    if (by === undefined || !bytes || bytes.length <= PAGE) return;
    event.preventDefault();
    void this.#go(this.#at + by).then(() => this.querySelector<HTMLElement>(".hex")?.focus());
  }
}

customElements.define("wb-hex-view", HexView);

export function hexView(bytes: Bytes, at?: number, marked: number | null = null): HexView {
  const view = new HexView();
  view.show(bytes, at, marked);
  return view;
}

/** The bytes of a file of the browser, without the core. */
export function fileBytes(file: File): Bytes {
  return { start: 0, length: file.size, label: "Bytes of the file",
    read: async (at, length) => new Uint8Array(await file.slice(at, at + length).arrayBuffer()) };
}
