// SPDX-License-Identifier: Apache-2.0
// <wb-compare-panel>: the current model, A, and a second one, B: what differs in their tensors, metadata and
// tokenizers. The second file is chosen or dropped here, or is one of those that are open.

import type { Comparison, DiffOptions, MetadataDiff, Model, TensorDiff } from "./api.js";
import { DifferenceTable, kindsOf } from "./difference-table.js";
import { DifferenceView } from "./difference-view.js";
import { button, facts, field, h, replace, spelled, type Child } from "./dom.js";
import { failureView } from "./findings.js";
import { chooseFiles } from "./file-drop.js";
import { grouped, plural, size } from "./format-numbers.js";
import { besideTable } from "./grid-table.js";
import { Job } from "./job.js";
import { cut } from "./long-name.js";
import { session, wasCancelled, type Entry } from "./state.js";

const ENTRIES = 300;
/** Models up to this size together are compared as soon as both are known. */
const AT_ONCE = 64 * 2 ** 20;

export class ComparePanel extends HTMLElement {
  #model: Model | null = null;
  #job = new Job();
  #result = h("div", { class: "stack" });
  #second = h("select", { name: "second" });
  #atol = h("input", { type: "number", name: "atol", min: 0, step: "any", placeholder: "none" });
  #rtol = h("input", { type: "number", name: "rtol", min: 0, step: "any", placeholder: "none" });
  #naming = h("select", { name: "naming" }, h("option", { value: "" }, "as they are"),
    h("option", { value: "llama" }, "those of llama.cpp, in both"));
  #permuted = h("input", { type: "checkbox", name: "permuted" });

  show(entry: Entry, model: Model): void {
    this.#model = model;
    const others = session.others();
    const chosen = session.second && others.includes(session.second) ? session.second : others[0];
    const add = button("Choose a second file", chooseFiles, others.length > 0 ? "" : "primary");
    if (!chosen) {
      replace(this, h("div", { class: "drop" }, h("p", { class: "drop-lead" }, "Drop a second model here"),
        h("p", { class: "quiet" }, `It is compared with ${entry.name}, tensor by tensor, whatever its format.`), add));
      return;
    }
    replace(this.#second, ...others.map((other, at) =>
      h("option", { value: at, selected: other === chosen, title: spelled(other.name), "aria-label": spelled(other.name) }, cut(other.name, 60))));
    this.#second.onchange = () => {
      session.second = others[Number(this.#second.value)] ?? null;
      replace(this.#result);
    };
    session.second = chosen;
    replace(this, h("section", { class: "card stack" },
      facts([["A", h("code", {}, entry.name)]], "compact"),
      h("div", { class: "options" }, field("B, the model to compare with", this.#second),
        field("Absolute tolerance", this.#atol), field("Relative tolerance", this.#rtol),
        field("Names of tensors", this.#naming)),
      h("label", { class: "check" }, this.#permuted, h("span", {}, "Look for permuted rows, transposed squares and " +
        "tensors that are stored once")),
      h("div", { class: "row" }, button("Compare", () => void this.compare(), "primary"), add)),
    this.#job, this.#result);
    if (entry.size + chosen.size <= AT_ONCE) void this.compare();
  }

  #options(): DiffOptions {
    const tolerance = (input: HTMLInputElement): number | undefined =>
      (input.value === "" ? undefined : Number(input.value));
    return { atol: tolerance(this.#atol), rtol: tolerance(this.#rtol), permuted: this.#permuted.checked,
      naming: this.#naming.value === "llama" ? "llama" : undefined };
  }

  async compare(): Promise<void> {
    const a = this.#model;
    const second = session.second;
    if (!a || !second) return;
    replace(this.#result);
    const options = this.#options();
    try {
      const { found, b } = await this.#job.run(`Comparing with ${second.name}`, async (job) => {
        if (!second.numbers) await session.open(second, job);
        if (!second.numbers) throw second.failure ?? new Error(`${second.name} could not be opened`);
        return { found: await a.diff(second.numbers, { ...options, ...job }), b: second.numbers };
      });
      this.#tell(found, a, b, options);
    } catch (error) {
      if (wasCancelled(error)) replace(this.#result, h("p", {}, "The comparison was cancelled."));
      else replace(this.#result, failureView(error));
    }
  }

  #tell(found: Comparison, a: Model, b: Model, options: DiffOptions): void {
    const badge = found.equal ? h("span", { class: "badge ok" }, "equal")
      : h("span", { class: "badge warning" }, found.different > 0 || found.metadata.length + found.tokenizer.length > 0
        ? "different" : "not compared in full");
    replace(this.#result,
      h("p", { class: "verdict-line", role: "status", "data-compared": found.equal ? "equal" : "different" }, badge,
        h("span", {}, summary(found))),
      found.tensors.length > 0 ? this.#tensors(found, a, b, options) : null,
      found.metadata.length > 0 ? entries("Metadata", found.metadata) : null,
      found.tokenizer.length > 0 ? entries("Tokenizer", found.tokenizer) : null);
  }

  #tensors(found: Comparison, a: Model, b: Model, options: DiffOptions): HTMLElement {
    const table = new DifferenceTable();
    const pair = h("div", { class: "split" });
    besideTable(pair, table, "The open difference", (index) => {
      const view = new DifferenceView();
      return { view, show: () => view.show(a, b, found.tensors[index] as TensorDiff, options) };
    });
    table.items = found.tensors;
    const unlisted = found.different + found.incomparable - found.tensors.filter(({ verdict }) =>
      verdict !== "equal").length;
    return h("section", { class: "stack" }, h("h3", {}, "Tensors"), pair, unlisted > 0
      ? h("p", { class: "quiet" }, `and ${plural(unlisted, "more tensor")} that the core did not list.`) : null);
  }
}

customElements.define("wb-compare-panel", ComparePanel);

/** "12 tensors: 3 changed, 1 only in A, 8 equal; 2 entries of metadata". */
function summary(found: Comparison): string {
  const counts = new Map<string, number>();
  for (const tensor of found.tensors) for (const kind of kindsOf(tensor)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const parts = [...counts].map(([kind, count]) => `${grouped(count)} ${kind}`);
  if (found.same > 0) parts.push(`${grouped(found.same)} equal`);
  if (found.moved > 0) parts.push(`${grouped(found.moved)} moved to another place in the file`);
  if (found.metadata.length > 0) parts.push(plural(found.metadata.length, "entry of metadata", "entries of metadata"));
  if (found.tokenizer.length > 0) parts.push("the tokenizer");
  const words = parts.join(", ") || "nothing differs";
  return `${plural(found.compared, "tensor")} compared (${size(found.bytes)}): ${words}.`;
}

function entries(title: string, list: readonly MetadataDiff[]): HTMLElement {
  const cell = (text: string | null, other: string): Child => (text === null ? h("span", { class: "quiet" }, other)
    : h("code", {}, text));
  const rows = list.slice(0, ENTRIES).map(({ key, tensor, a, b, first }) => h("tr", {},
    h("th", { scope: "row" }, h("code", {}, tensor ? `${tensor}: ${key}` : key)), h("td", {}, cell(a, "only in B")),
    h("td", {}, cell(b, "only in A"), first === undefined ? null
      : h("span", { class: "quiet" }, ` first difference: item ${grouped(first)}`))));
  return h("section", { class: "card stack" }, h("h3", {}, title), h("table", { class: "entries" },
    h("thead", {}, h("tr", {}, ...["Key", "A", "B"].map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows)), list.length > ENTRIES
    ? h("p", { class: "quiet" }, `and ${grouped(list.length - ENTRIES)} more`) : null);
}
