// SPDX-License-Identifier: Apache-2.0
// <wb-overview>: a summary of a file: map, size, version, attributes, tokenizer, checksums; and the verdict of the full
// check, which runs at once for small files and by a button for large ones.

import type { Model, Verdict } from "./api.js";
import { button, facts, h, replace, type Child } from "./dom.js";
import { ByteMap } from "./byte-map.js";
import { failureView, findingsView } from "./findings.js";
import { grouped, parametersText, plural, size, sizeText } from "./format-numbers.js";
import { Job } from "./job.js";
import { session, VERIFIED_AT_ONCE, wasCancelled, type Entry } from "./state.js";
import { attributeText } from "./tensor-view.js";

const LONG_VALUE = 400;
/** Limits on the attributes that the page shows, because a file may have any number, of any length. */
const LONGEST_VALUE = 20_000;
const ATTRIBUTES = 300;

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
    replace(this, this.#verdict, this.#job, file ? this.#map : null,
      h("div", { class: "columns" }, section("File", fileFacts(entry, model, numbers)), attributes(model), tokenizer(model),
        checksums(model), this.#digest("Content digest", model, "The same tensors have the same digest in every format."),
        numbers === model ? null : this.#digest("Digest of the numbers", numbers,
          "The same as the content digest of the dequantized model.")), this.#warnings);
    replace(this.#warnings, model.findings.length > 0
      ? section("Warnings", findingsView(model.findings, model.inspection.findings_total, file)) : null);
    this.#map.show(entry.size, model.tensors, model.findings);
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
    const doubts = verdict.not_known_safe;
    const words = !verdict.valid ? "Invalid" : doubts.length > 0 ? "Not known to be safe"
      : verdict.findings.length > 0 ? "Valid, with warnings" : "Valid";
    const tone = !verdict.valid ? "error" : doubts.length > 0 ? "warning" : "ok";
    this.#verdict.dataset["verdict"] = verdict.valid ? "valid" : "broken";
    replace(this.#verdict, h("p", { class: `verdict-line ${tone}` },
      h("span", { class: `badge ${tone}` }, words),
      h("span", {}, !verdict.valid ? `${plural(verdict.findings_total ?? verdict.findings.length, "finding")}.`
        : doubts.length > 0 ? `Loading it with Python is not known to be safe: ${doubts.slice(0, 10).join(", ")}${
          doubts.length > 10 ? ` and ${grouped(doubts.length - 10)} more` : ""}.`
        : "The file follows every rule of its format."),
      button("Verify again", () => void this.verify(), "small")), verdict.valid ? soundness(verdict) : null);
    replace(this.#warnings);
    if (verdict.findings.length > 0) {
      this.#verdict.append(findingsView(verdict.findings, verdict.findings_total, file));
      if (file && entry.model) this.#map.show(entry.size, entry.model.tensors, verdict.findings);
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

function fileFacts(entry: Entry, model: Model, numbers: Model): HTMLElement {
  const rows: [string, Child][] = [["Format", code(model.format)], ["Version", model.version ?? "none stated"],
    ["Size", sizeText(entry.size)], ["Tensors", h("span", { class: "number" }, grouped(numbers.tensors.length))],
    ["Parameters", parametersText(numbers.inspection.parameters)],
    ["Dtypes", numbers.inspection.dtypes.map(({ dtype, tensors }) => `${dtype} × ${grouped(tensors)}`).join(", ") || "none"]];
  if (model.inspection.architecture) rows.splice(2, 0, ["Architecture", code(model.inspection.architecture)]);
  const weights = numbers.tensors.flatMap(({ stored }) => stored ?? []);
  if (weights.length > 0) {
    const parts = weights.reduce((sum, { tensors }) => sum + tensors.length, 0);
    rows.push(["Quantized", `${plural(weights.length, "weight")} of ${plural(parts, "stored tensor")}`]);
  }
  for (const { name, codes, companions } of numbers.inspection.schemes ?? []) {
    rows.push([weights.length > 0 ? "Not decoded" : "Quantized",
      `${name}: ${plural(codes, "tensor")} of codes and ${grouped(companions)} that complete them`]);
  }
  if (model.inspection.dtype_label) rows.push(["Label", code(model.inspection.dtype_label)]);
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
  return section("Tokenizer", facts([["Kind", code(known.kind)], ["Vocabulary", number(known.vocab_size)],
    ["Tokens", number(known.tokens)], ["Merges", number(known.merges)],
    ...Object.entries(known.special).map(([name, id]): [string, Child] => [name, number(id)])]));
}

function checksums(model: Model): HTMLElement | null {
  const rows = Object.entries(model.checksums);
  if (rows.length === 0) return null;
  return section("Checksums", facts(rows.map(([name, value]): [string, Child] =>
    [name.replace(/_/g, " "), h("code", { class: "digest" }, value)])));
}
