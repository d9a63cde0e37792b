// SPDX-License-Identifier: Apache-2.0
// <wb-edit-panel>: a file's metadata as fields. Shows what an edit would change, down to the bytes, and offers the
// edited file as a download. The opened file never changes.

import type { Change, EditDetails, EditOptions, Model, Output } from "./api.js";
import { button, facts, field, h, replace } from "./dom.js";
import { downloadButtons } from "./download.js";
import { engine } from "./engine.js";
import { failureView } from "./findings.js";
import { grouped, plural, size, sizeText } from "./format-numbers.js";
import { fileBytes, hexView } from "./hex-view.js";
import { Job } from "./job.js";
import { session, wasCancelled, type Entry } from "./state.js";
import { attributeText } from "./tensor-view.js";

/** Files up to this size are edited in memory with the preview, to compare the bytes. */
const AT_ONCE = 64 * 2 ** 20;
/** How far into both files the preview compares bytes; headers are rarely longer. */
const COMPARED = 4 * 2 ** 20;
const FIELDS = 200;
const LONGEST_VALUE = 2000;

interface Row {
  key: string;
  before: string;
  input: HTMLInputElement | HTMLTextAreaElement;
  removed: boolean;
}

export class EditPanel extends HTMLElement {
  #entry: Entry | null = null;
  #rows: Row[] = [];
  #fields = h("div", { class: "stack" });
  #key = h("input", { type: "text", name: "new-key", spellcheck: false, autocomplete: "off" });
  #value = h("input", { type: "text", name: "new-value", autocomplete: "off" });
  #job = new Job();
  #result = h("div", { class: "stack", "aria-live": "polite" });

  show(entry: Entry, model: Model): void {
    this.#entry = entry;
    const all = Object.entries(model.attributes);
    // A list or a long text has no field here.
    const shown = all.map(([key, value]) => [key, value, attributeText(value)] as const)
      .filter(([, value, text]) => (typeof value !== "object" || value === null) && text.length <= LONGEST_VALUE);
    this.#rows = shown.slice(0, FIELDS).map(([key, , text]) => ({ key, before: text, removed: false,
      input: h("input", { type: "text", value: text, autocomplete: "off" }) }));
    replace(this.#fields, ...this.#rows.map((row) => this.#field(row)));
    const left = all.length - this.#rows.length;
    replace(this, h("form", { class: "card stack", onsubmit: (event: Event) => {
      event.preventDefault();
      void this.preview();
    } }, h("p", { class: "quiet" },
      "Change, remove or add metadata. The file itself stays as it is: you get a new one."),
    this.#fields, left > 0 ? h("p", { class: "quiet" },
      `${plural(left, "entry", "entries")} of metadata, lists or long texts, cannot be changed here.`) : null,
    h("div", { class: "options" }, field("A new key", this.#key), field("Its value", this.#value)),
    h("div", { class: "row" }, h("button", { type: "submit", class: "button primary" }, "Preview"))),
    this.#job, this.#result);
  }

  #field(row: Row): HTMLElement {
    const remove = button("Remove", () => {
      row.removed = !row.removed;
      row.input.disabled = row.removed;
      remove.textContent = row.removed ? "Keep" : "Remove";
      remove.setAttribute("aria-label", `${remove.textContent} ${row.key}`);
    }, "", { "aria-label": `Remove ${row.key}` });
    return h("div", { class: "edit-row" }, field(row.key, row.input), remove);
  }

  #options(): EditOptions {
    const set = Object.create(null) as Record<string, string>; // a key may be "__proto__"
    for (const { key, before, input, removed } of this.#rows) {
      if (!removed && input.value !== before) set[key] = input.value;
    }
    if (this.#key.value !== "") set[this.#key.value] = this.#value.value;
    const entry = this.#entry as Entry;
    const unset = this.#rows.filter(({ removed }) => removed).map(({ key }) => key);
    return { set, unset, beside: session.beside(entry) };
  }

  async preview(): Promise<void> {
    const file = this.#entry?.source;
    if (!(file instanceof File)) return;
    const options = this.#options();
    replace(this.#result);
    try {
      const wb = await engine();
      const plan = await this.#job.run("Planning the edit", (job) => wb.planEdit(file, { ...options, ...job }));
      const place = h("div", { class: "stack" });
      replace(this.#result, planView(plan), place);
      if (plan.changes.length === 0) return;
      const write = (): Promise<void> => this.#write(file, options, place);
      if (file.size <= AT_ONCE) await write();
      else place.append(button(`Make the edited file (reads ${size(file.size)})`, () => void write(), "primary"));
    } catch (error) {
      if (!wasCancelled(error)) replace(this.#result, failureView(error));
    }
  }

  async #write(file: File, options: EditOptions, place: HTMLElement): Promise<void> {
    try {
      const { output } = await this.#job.run("Writing the edited file", async (job) =>
        (await engine()).edit(file, { ...options, ...job }));
      replace(place, await changedBytes(file, output), downloadButtons(output));
    } catch (error) {
      replace(place, wasCancelled(error) ? h("p", {}, "Cancelled: nothing was written.") : failureView(error));
    }
  }
}

customElements.define("wb-edit-panel", EditPanel);

const WAYS: Record<EditDetails["way"], string> = {
  "nothing": "Nothing changes.",
  "in-place": "The new header fits where the old one is: the command can change the file in place.",
  "copied": "The new header does not fit where the old one is: the edit takes a new file.",
  "converted": "This format has no header that can change alone: the edit takes a new file, written from its tensors.",
};

function planView(plan: EditDetails): HTMLElement {
  const change = ({ subject, from, to }: Change): HTMLElement => h("tr", {},
    h("th", { scope: "row" }, h("code", {}, subject)), h("td", {}, h("code", {}, from)),
    h("td", {}, h("code", {}, to)));
  return h("section", { class: "card stack", "data-way": plan.way }, h("h3", {}, "What would change"),
    h("p", {}, WAYS[plan.way]), plan.changes.length > 0
      ? h("table", { class: "entries" }, h("thead", {}, h("tr", {}, ...["What", "Before", "After"].map((head) =>
        h("th", { scope: "col" }, head)))), h("tbody", {}, ...plan.changes.map(change))) : null,
    facts([["Size", h("span", { class: "row" }, sizeText(plan.size), "→", sizeText(plan.sizeAfter))],
      ...(plan.needed > 0 ? [["Header", h("span", { class: "number" },
        `${plural(plan.header, "byte")}, of which the new one needs ${grouped(plan.needed)}`)] as [string, HTMLElement]]
        : [])], "compact"));
}

/** The bytes of both files from the first one that differs, side by side. */
async function changedBytes(file: File, output: Output): Promise<HTMLElement> {
  const edited = new File([await output.blob()], output.name);
  const read = async (source: File): Promise<Uint8Array> =>
    new Uint8Array(await source.slice(0, COMPARED).arrayBuffer());
  const [before, after] = [await read(file), await read(edited)];
  const differs = (at: number): boolean => before[at] !== after[at];
  let first = 0;
  while (first < Math.max(before.length, after.length) && !differs(first)) first += 1;
  if (first === Math.max(before.length, after.length)) {
    return h("p", { class: "quiet" }, `The first ${size(COMPARED)} are the same; the bytes differ after them.`);
  }
  let count = 0;
  const both = Math.min(before.length, after.length);
  for (let at = first; at < both; at += 1) if (differs(at)) count += 1;
  const moved = file.size !== edited.size;
  const view = (label: string, source: File): HTMLElement => h("section", { class: "stack" }, h("h4", {}, label),
    hexView({ ...fileBytes(source), label: `Bytes of the file, ${label.toLowerCase()}`,
      changed: (at) => at < COMPARED && differs(at) }, first - (first % 16)));
  return h("section", { class: "card stack", "data-changed": count, "data-first": first }, h("h3", {}, "Bytes"),
    h("p", {}, moved ? `From byte ${grouped(first)} on, the files differ: what is after the change has moved.`
      : `${plural(count, "byte")} would change, the first at ${grouped(first)}.`),
    h("div", { class: "columns" }, view("Before", file), view("After", edited)));
}
