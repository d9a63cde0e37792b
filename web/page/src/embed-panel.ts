// SPDX-License-Identifier: Apache-2.0
// <wb-embed-panel>: the similarity of two sentences on a scale, and a small search over a few lines. Takes the
// vocabulary and the number of heads from files dropped beside the model if the model has none.

import type { Embedder, Model } from "./api.js";
import { button, field, h, replace, svg } from "./dom.js";
import { failureView } from "./findings.js";
import { plural } from "./format-numbers.js";
import { Job, type JobOptions } from "./job.js";
import { session, wasCancelled } from "./state.js";

const LINES = ["How do I reset my password?", "The cat sleeps on the warm windowsill.",
  "Our office is closed on public holidays.", "You can change your login details in the settings.",
  "Trains to the coast leave every hour."];

/** Whether a model looks like a BERT encoder; the core decides in the end. */
export function couldEmbed(model: Model): boolean {
  return model.format === "embd" ||
    model.tensors.some(({ name }) => name.endsWith("embeddings.word_embeddings.weight"));
}

/** A cosine on a scale from -1 to 1. */
function scale(value: number): SVGElement {
  const x = (at: number): number => 10 + ((at + 1) / 2) * 380;
  const ticks = Array.from({ length: 41 }, (_, at) => svg("line", { class: "tick",
    x1: x(at / 20 - 1), x2: x(at / 20 - 1), y1: 34, y2: at % 10 === 0 ? 20 : at % 5 === 0 ? 25 : 29 }));
  const words = [-1, -0.5, 0, 0.5, 1].map((at) => svg("text", { class: "tick-label", x: x(at), y: 50,
    "text-anchor": "middle" }, String(at)));
  return svg("svg", { class: "scale", viewBox: "0 0 400 56", "aria-hidden": "true" },
    svg("line", { class: "tick", x1: x(-1), x2: x(1), y1: 34, y2: 34 }), ...ticks, ...words,
    svg("path", { class: "needle", d: `M${x(value)} 34 l-6 -18 h12 z` }));
}

async function headsOfSettings(): Promise<number | undefined> {
  const config = session.ofRole("settings").find((file) => file.name === "config.json");
  if (!config || config.size > 2 ** 20) return undefined;
  try {
    const value = (JSON.parse(await config.text()) as { num_attention_heads?: unknown }).num_attention_heads;
    return typeof value === "number" ? value : undefined;
  } catch {
    return undefined; // not JSON: the user can fill in the field below
  }
}

function cosine(a: Float32Array, b: Float32Array): number {
  const sum = (f: (at: number) => number): number => a.reduce((all, _, at) => all + f(at), 0);
  const product = sum((at) => (a[at] ?? 0) * (b[at] ?? 0));
  const lengths = Math.sqrt(sum((at) => (a[at] ?? 0) ** 2) * sum((at) => (b[at] ?? 0) ** 2));
  return lengths === 0 ? 0 : product / lengths;
}

export class EmbedPanel extends HTMLElement {
  #model: Model | null = null;
  #embedder: { key: string; made: Embedder } | null = null;
  #job = new Job();
  #heads = h("input", { type: "number", min: 1, step: 1, placeholder: "as the model says" });
  #pooling = h("select", {}, h("option", { value: "" }, "as the model says"), h("option", { value: "mean" }, "mean"),
    h("option", { value: "cls" }, "cls"));
  #first = h("textarea", { rows: 2 }, LINES[0]);
  #second = h("textarea", { rows: 2 }, LINES[3]);
  #query = h("input", { type: "text", value: "forgotten credentials" });
  #lines = h("textarea", { rows: 6 }, LINES.join("\n"));
  #alike = h("div", { class: "alike", "aria-live": "polite" });
  #found = h("div", { "aria-live": "polite" });

  show(model: Model): void {
    this.#model = model;
    const vocabulary = this.#vocabulary;
    const source = vocabulary ? `Words from ${vocabulary.name}.` : model.tokenizer ? "" :
      "This file has no vocabulary: drop its vocab.txt or tokenizer.json here too.";
    replace(this, source ? h("p", { class: model.tokenizer || vocabulary ? "quiet" : "warning-text" }, source) : null,
      this.#job, h("div", { class: "columns" },
        h("section", { class: "card stack" }, h("h3", {}, "Two sentences"), field("One", this.#first),
          field("The other", this.#second), h("div", { class: "row" },
            button("Compare", () => void this.#compare(), "primary")), this.#alike),
        h("section", { class: "card stack" }, h("h3", {}, "A small search"), field("Query", this.#query),
          field("Lines to search", this.#lines, "one text a line"), h("div", { class: "row" },
            button("Search", () => void this.#search(), "primary")), this.#found)),
      h("details", {}, h("summary", {}, "How the vectors are computed"), h("div", { class: "options" },
        field("Attention heads", this.#heads), field("Pooling", this.#pooling))));
    void headsOfSettings().then((heads) => { if (heads && !this.#heads.value) this.#heads.value = String(heads); });
  }

  disconnectedCallback(): void {
    void this.#embedder?.made.close();
    this.#embedder = null;
  }

  get #vocabulary(): File | undefined {
    if (this.#model?.tokenizer) return undefined;
    return session.companion("vocabulary") ?? session.companion("tokenizer");
  }

  async #made(options: JobOptions): Promise<Embedder> {
    const key = `${this.#heads.value} ${this.#pooling.value}`;
    if (this.#embedder?.key === key) return this.#embedder.made;
    await this.#embedder?.made.close();
    this.#embedder = null;
    const pooling = this.#pooling.value;
    const made = await (this.#model as Model).embedder({ ...options, heads: Number(this.#heads.value) || undefined,
      vocabulary: this.#vocabulary, pooling: pooling === "mean" || pooling === "cls" ? pooling : undefined });
    this.#embedder = { key, made };
    return made;
  }

  async #run(place: HTMLElement, work: (embedder: Embedder, options: JobOptions) => Promise<void>): Promise<void> {
    try {
      await this.#job.run("Computing", async (options) => work(await this.#made(options), options));
    } catch (error) {
      replace(place, wasCancelled(error) ? null : failureView(error));
      const settings = this.querySelector("details"); // the user can add what the model lacks
      if (settings && !wasCancelled(error)) settings.open = true;
    }
  }

  #compare(): Promise<void> {
    return this.#run(this.#alike, async (embedder, options) => {
      const value = await embedder.similarity(this.#first.value, this.#second.value, options);
      replace(this.#alike, h("p", { class: "big number", "data-similarity": value }, value.toFixed(4)), scale(value),
        h("p", { class: "quiet" }, "Cosine similarity of the two vectors: 1 is the same meaning, 0 is nothing in common. " +
          `${plural(embedder.dimension, "number")} a vector.`));
    });
  }

  #search(): Promise<void> {
    const lines = this.#lines.value.split("\n").map((line) => line.trim()).filter((line) => line !== "");
    return this.#run(this.#found, async (embedder, options) => {
      const [query] = await embedder.embed([this.#query.value], { ...options, role: "query" });
      const vectors = await embedder.embed(lines, { ...options, role: "document" });
      if (!query || vectors.length === 0) {
        replace(this.#found, h("p", { class: "quiet" }, "No lines to search."));
        return;
      }
      const ranked = vectors.map((vector, at) => ({ text: lines[at] ?? "", score: cosine(query, vector) }))
        .sort((a, b) => b.score - a.score);
      replace(this.#found, h("ol", { class: "ranked" }, ...ranked.map(({ text, score }) =>
        h("li", {}, h("span", { class: "number" }, score.toFixed(3)),
          h("meter", { min: 0, max: 1, value: Math.max(0, score), "aria-hidden": "true" }), h("span", {}, text)))));
    });
  }
}

customElements.define("wb-embed-panel", EmbedPanel);
