// SPDX-License-Identifier: Apache-2.0
// <wb-overview>: a summary of a file. Leads with what `weighbridge inspect` says first, then the map of the file, the
// verdict of the full check, which runs at once for small files and by a button for large ones, sizes by layer, attributes,
// tokenizer, checksums.

import type { Model, Verdict } from "./api.js";
import { button, facts, h, replace, tiles, type Child } from "./dom.js";
import { ByteMap } from "./byte-map.js";
import { failureView, findingsView } from "./findings.js";
import { grouped, parametersText, plural, share, size, sizeText } from "./format-numbers.js";
import { Job } from "./job.js";
import { layerRows } from "./layers.js";
import { cut } from "./long-name.js";
import { session, VERIFIED_AT_ONCE, wasCancelled, type Entry } from "./state.js";
import { storedBytes } from "./tensor-table.js";
import { attributeText } from "./tensor-view.js";

const LONG_VALUE = 400;
/** Limits on the attributes that the page shows, because a file may have any number, of any length. */
const LONGEST_VALUE = 20_000;
const ATTRIBUTES = 300;
const LAYERS = 40;

export class Overview extends HTMLElement {
  #entry: Entry | null = null;
  #job = new Job();
  #verdict = h("div", { class: "verdict", "aria-live": "polite" });
  /** The findings from opening; the verdict of the full check replaces them. */
  #warnings = h("div", {});
  #map = new ByteMap();

  show(entry: Entry): void {
    const { model, numbers } = entry;
    if (!model || !numbers) return;
    this.#entry = entry;
    const file = entry.source instanceof File ? entry.source : null;
    replace(this, lead(numbers), this.#map, this.#verdict, this.#job,
      h("div", { class: "columns" }, section("File", fileFacts(entry, model, numbers)), layers(numbers), attributes(model), tokenizer(model),
        checksums(model), this.#digest("Content digest", model, "The same tensors have the same digest in every format."),
        numbers === model ? null : this.#digest("Digest of the numbers", numbers,
          "The same as the content digest of the dequantized model.")), this.#warnings);
    replace(this.#warnings, model.findings.length > 0
      ? section("Warnings", findingsView(model.findings, model.inspection.findingsTotal, file)) : null);
    this.#map.show(file ? entry.size : null, model, numbers, model.findings);
    if (entry.verdict) this.#tell(entry.verdict);
    else if (entry.size <= VERIFIED_AT_ONCE) void this.verify();
    else this.#offer(`Opened by its structure. Verifying the rest reads all ${size(entry.size)}.`);
  }

  async verify(): Promise<void> {
    const entry = this.#entry;
    if (!entry) return;
    replace(this.#verdict);
    try {
      const verdict = await this.#job.run("Verifying", (options) => session.verify(entry, options));
      this.#tell(verdict);
      this.dispatchEvent(new CustomEvent("verdict", { detail: verdict, bubbles: true }));
    } catch (error) {
      if (wasCancelled(error)) this.#offer("The check was cancelled: nothing is verified yet.");
      else replace(this.#verdict, failureView(error), button("Verify again", () => void this.verify()));
    }
  }

  #offer(text: string): void {
    replace(this.#verdict, h("p", {}, text), button("Verify", () => void this.verify(), "primary"));
    this.#verdict.dataset["verdict"] = "open";
  }

  #tell(verdict: Verdict): void {
    const entry = this.#entry as Entry;
    const file = entry.source instanceof File ? entry.source : null;
    const doubts = verdict.notKnownSafe;
    const words = !verdict.valid ? "Invalid" : doubts.length > 0 ? "Not known to be safe"
      : verdict.findings.length > 0 ? "Valid, with warnings" : "Valid";
    const tone = !verdict.valid ? "error" : doubts.length > 0 ? "warning" : "ok";
    this.#verdict.dataset["verdict"] = verdict.valid ? "valid" : "broken";
    replace(this.#verdict, h("p", { class: `verdict-line ${tone}` },
      h("span", { class: `badge ${tone}` }, words),
      h("span", {}, !verdict.valid ? `${plural(verdict.findingsTotal ?? verdict.findings.length, "finding")}.`
        : doubts.length > 0 ? `Loading it with Python is not known to be safe: ${doubts.slice(0, 10).join(", ")}${
          doubts.length > 10 ? ` and ${grouped(doubts.length - 10)} more` : ""}.`
        : "The file follows every rule of its format."),
      button("Verify again", () => void this.verify(), "small")), verdict.valid ? soundness(verdict) : null);
    replace(this.#warnings);
    if (verdict.findings.length > 0) {
      this.#verdict.append(findingsView(verdict.findings, verdict.findingsTotal, file));
      if (file && entry.model && entry.numbers) this.#map.show(entry.size, entry.model, entry.numbers, verdict.findings);
    }
  }

  #digest(title: string, model: Model, meaning: string): HTMLElement {
    const place = h("div", {});
    const make = button("Compute", () => void (async () => {
      try {
        const hash = await this.#job.run("Reading the content", (options) => model.hash(options));
        replace(place, h("code", { class: "digest" }, hash.digest));
      } catch (error) {
        if (!wasCancelled(error)) replace(place, failureView(error));
      }
    })(), "small");
    place.append(make);
    return section(title, h("p", { class: "quiet" }, meaning), place);
  }
}

customElements.define("wb-overview", Overview);

function section(title: string, ...content: Child[]): HTMLElement {
  return h("section", { class: "card stack" }, h("h3", {}, title), ...content);
}

/** What the check covered, in the library's words, and what no check of a file alone can prove. */
function soundness({ checked, parts, digests }: Verdict): HTMLElement {
  const rows: [string, Child][] = [["Checked", checked]];
  if (digests > 0) {
    rows.push(["Digests", digests === parts ? `of every stored part (${grouped(parts)})`
      : `of ${grouped(digests)} of ${plural(parts, "stored part")}`]);
  }
  rows.push(["Not proven", "that this is the file its author published, or that its weights are good: compare the " +
    "content digest below, or the file's SHA-256, with a published one."]);
  return facts(rows, "compact soundness");
}

const code = (text: string): HTMLElement => h("code", {}, text);

/** What `weighbridge inspect` says first; what the metadata do not state is left out. */
function lead({ inspection }: Model): HTMLElement {
  const { architecture, parameters, dtype, quantization, contextLength, vocabulary, chatTemplate, license } = inspection;
  const number = (value: number): HTMLElement => h("span", { class: "number" }, grouped(value));
  const rows: ([string, Child] | false)[] = [
    architecture !== null && ["Architecture", cut(architecture, 60)],
    ["Parameters", parametersText(parameters)],
    quantization !== null ? ["Quantization", cut(quantization, 60)] : dtype !== null && ["Dtype", cut(dtype, 60)],
    contextLength !== null && ["Context", h("span", {}, number(contextLength), " tokens")],
    vocabulary !== null && ["Vocabulary", h("span", {}, number(vocabulary), " tokens")],
    chatTemplate && ["Chat template", "yes"],
    license !== null && ["License", cut(license, 60)],
  ];
  return h("div", { class: "lead-facts" }, tiles(rows.filter((row) => row !== false)));
}

/** Nothing for a model of a single layer. */
function layers({ tensors }: Model): HTMLElement | null {
  const rows = layerRows(tensors, storedBytes);
  if (rows.length < 2) return null;
  const all = tensors.reduce((sum, tensor) => sum + storedBytes(tensor), 0);
  return section("Sizes by layer", h("table", { class: "layers" },
    h("thead", {}, h("tr", {}, ...["Layer", "Each", "Size", "Share"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.slice(0, LAYERS).map(({ name, layers: count, bytes, tensors: each }) => h("tr", { title: plural(each * count, "tensor") },
      h("th", { scope: "row" }, code(cut(name, 60))), h("td", { class: "number" }, count > 1 ? `${grouped(count)} × ${size(bytes)}` : null),
      h("td", { class: "number" }, size(bytes * count)),
      h("td", { class: "number" }, share(bytes * count, all)))))), rows.length > LAYERS
    ? h("p", { class: "quiet" }, `and ${grouped(rows.length - LAYERS)} more`) : null);
}

function fileFacts(entry: Entry, model: Model, numbers: Model): HTMLElement {
  const rows: [string, Child][] = [["Format", code(model.format)], ["Version", model.version ?? "none stated"],
    ["Size", sizeText(entry.size)], ["Tensors", h("span", { class: "number" }, grouped(numbers.tensors.length))],
    ["Dtypes", numbers.inspection.dtypes.map(({ dtype, tensors }) => `${dtype} × ${grouped(tensors)}`).join(", ") || "none"]];
  const weights = numbers.tensors.flatMap(({ stored }) => stored ?? []);
  if (weights.length > 0) {
    const parts = weights.reduce((sum, { tensors }) => sum + tensors.length, 0);
    rows.push(["Quantized", `${plural(weights.length, "weight")} of ${plural(parts, "stored tensor")}`]);
  }
  for (const { name, codes, companions } of numbers.inspection.schemes ?? []) {
    rows.push([weights.length > 0 ? "Not decoded" : "Quantized",
      `${name}: ${plural(codes, "tensor")} of codes and ${grouped(companions)} that complete them`]);
  }
  if (model.inspection.dtypeLabel) rows.push(["Label", code(model.inspection.dtypeLabel)]);
  return facts(rows);
}

function attributes(model: Model): HTMLElement | null {
  const rows = Object.entries(model.attributes);
  if (rows.length === 0) return null;
  return section("Attributes", facts(rows.slice(0, ATTRIBUTES).map(([name, value]): [string, Child] => {
    const text = attributeText(value);
    if (text.length <= LONG_VALUE) return [name, code(text)];
    const shown = text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE)} …`;
    return [name, h("details", {}, h("summary", {}, plural(text.length, "character")), code(shown))];
  }), "wide"), rows.length > ATTRIBUTES
    ? h("p", { class: "quiet" }, `and ${grouped(rows.length - ATTRIBUTES)} more`) : null);
}

function tokenizer(model: Model): HTMLElement | null {
  const known = model.tokenizer;
  if (!known) return null;
  const number = (value: number): HTMLElement => h("span", { class: "number" }, grouped(value));
  return section("Tokenizer", facts([["Kind", code(known.kind)], ["Vocabulary", number(known.vocabSize)],
    ["Tokens", number(known.tokens)], ["Merges", number(known.merges)],
    ...Object.entries(known.special).map(([name, id]): [string, Child] => [name, number(id)])]));
}

function checksums(model: Model): HTMLElement | null {
  const rows = Object.entries(model.checksums);
  if (rows.length === 0) return null;
  return section("Checksums", facts(rows.map(([name, value]): [string, Child] =>
    [name.replace(/_/g, " "), h("code", { class: "digest" }, value)])));
}
