// SPDX-License-Identifier: Apache-2.0
// <wb-generate-panel>: a prompt, the sampling options, and the text as it is generated, with its speed and memory use.
// Runs the model with the adapters that are switched on in the admission panel, and names them.

import type { Generator, Model } from "./api.js";
import { button, field, h, replace } from "./dom.js";
import { engine } from "./engine.js";
import { failureView } from "./findings.js";
import { grouped, percent, plural, size } from "./format-numbers.js";
import { session, wasCancelled } from "./state.js";

const STOPPED: Record<string, string> = {
  eos: "the model ended the text",
  length: "as many tokens as asked for",
  text: "a stop text came",
  context: "the context is full",
};

interface Running {
  key: string;
  adapted: Model | null;
  generator: Generator;
}

/** Whether a model looks like a language model; the core decides in the end. */
export function couldGenerate(model: Model): boolean {
  return model.format === "slm" || model.format === "llama2c" || "slm.model_type" in model.attributes ||
    (model.tokenizer !== null && model.tokenizer.kind !== "wordpiece");
}

export class GeneratePanel extends HTMLElement {
  #model: Model | null = null;
  #running: Running | null = null;
  #abort: AbortController | null = null;
  #prompt = h("textarea", { rows: 3, spellcheck: false }, "Once upon a time");
  #stop = h("textarea", { rows: 2, spellcheck: false });
  #numbers = {
    maxTokens: h("input", { type: "number", min: 1, step: 1, value: 200 }),
    temperature: h("input", { type: "number", min: 0, max: 5, step: 0.05, value: 0.8 }),
    topP: h("input", { type: "number", min: 0, max: 1, step: 0.01, value: 0.95 }),
    topK: h("input", { type: "number", min: 0, step: 1, value: 0 }),
    seed: h("input", { type: "number", min: 0, step: 1, value: 1 }),
  };
  #go = button("Generate", () => void this.#generate(), "primary");
  #halt = button("Stop", () => this.#abort?.abort(), "", { disabled: true });
  #adapters = h("p", { class: "quiet", "aria-live": "polite" });
  #output = h("div", { class: "output", tabindex: "0", role: "region", "aria-label": "Generated text" });
  #status = h("p", { class: "readout number", role: "status" }, "\u00a0");
  #listen = (): void => this.#tellAdapters();

  show(model: Model): void {
    this.#model = model;
    const { maxTokens, temperature, topP, topK, seed } = this.#numbers;
    replace(this, h("form", { class: "generate", onsubmit: (event: Event) => {
      event.preventDefault();
      void this.#generate();
    } },
    h("div", { class: "stack" }, field("Prompt", this.#prompt),
      h("div", { class: "row" }, this.#go, this.#halt, this.#status),
      this.#adapters, this.#output),
    h("fieldset", { class: "card options narrow" }, h("legend", {}, "Sampling"), field("Most tokens", maxTokens),
      field("Temperature", temperature, "0 takes the likeliest token always"), field("Top-p", topP, "1 considers all"),
      field("Top-k", topK, "0 considers all"), field("Seed", seed, "the same seed gives the same text"),
      field("Stop texts", this.#stop, "one a line"))));
    this.#placeholder();
    this.#tellAdapters();
  }

  connectedCallback(): void { session.addEventListener("adapters", this.#listen); }

  disconnectedCallback(): void {
    session.removeEventListener("adapters", this.#listen);
    this.#abort?.abort();
    void this.#release();
  }

  #placeholder(): void {
    replace(this.#output, h("span", { class: "quiet" }, "The text appears here, token by token."));
  }

  #tellAdapters(): void {
    const on = session.adapters.map((file) => file.name);
    this.#adapters.textContent = on.length === 0 ? "" : `With ${plural(on.length, "adapter")}: ${on.join(", ")}`;
  }

  /** The generator for the adapters that are on; recreated when they change. */
  async #generator(signal: AbortSignal): Promise<Generator> {
    const model = this.#model as Model;
    const key = session.adapters.map((file) => file.name).join("\n");
    if (this.#running?.key === key) return this.#running.generator;
    await this.#release();
    await this.#prove(signal);
    const adapted = session.adapters.length > 0 ? await model.adapt(session.adapters) : null;
    const generator = await (adapted ?? model).generator();
    this.#running = { key, adapted, generator };
    return generator;
  }

  /** Runs only what has passed the full check, which a large file may still need. */
  async #prove(signal: AbortSignal): Promise<void> {
    const entry = session.current;
    if (!entry || entry.verdict?.valid) return;
    this.#status.textContent = "Verifying before the first use";
    const onProgress = (done: number, total: number): void => {
      this.#status.textContent = `Verifying before the first use ${percent(done, total)}`;
    };
    const verdict = await session.verify(entry, { signal, onProgress });
    this.dispatchEvent(new CustomEvent("verdict", { detail: verdict, bubbles: true }));
    if (!verdict.valid) throw new Error("The full check found this file invalid, so it is not run.");
    this.#status.textContent = "Preparing";
  }

  async #release(): Promise<void> {
    const running = this.#running;
    this.#running = null;
    await running?.generator.close();
    await running?.adapted?.close();
  }

  async #generate(): Promise<void> {
    if (this.#abort) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.#go.disabled = true;
    this.#halt.disabled = false;
    const prompt = this.#prompt.value;
    const text = document.createTextNode("");
    replace(this.#output, h("span", { class: "prompt-text" }, prompt), text);
    this.#status.textContent = "Preparing";
    try {
      await this.#stream(await this.#generator(abort.signal), prompt, text, abort.signal);
    } catch (error) {
      if (wasCancelled(error)) this.#status.textContent += " · stopped";
      else {
        this.#status.textContent = "\u00a0";
        replace(this.#output, failureView(error));
      }
    } finally {
      this.#abort = null;
      this.#go.disabled = false;
      this.#halt.disabled = true;
    }
  }

  async #stream(generator: Generator, prompt: string, text: Text, signal: AbortSignal): Promise<void> {
    const value = (input: HTMLInputElement): number => Number(input.value) || 0;
    const { maxTokens, temperature, topP, topK, seed } = this.#numbers;
    const pieces = generator.generate(prompt, { maxTokens: Math.max(1, value(maxTokens)),
      temperature: value(temperature), topP: value(topP), topK: value(topK) || undefined, seed: value(seed), signal,
      stop: this.#stop.value.split("\n").filter((line) => line !== "") });
    const began = performance.now();
    for (;;) {
      const step = await pieces.next();
      if (step.done === true) {
        text.data = step.value.text;
        const memory = await (await engine()).memory();
        this.#status.textContent = `${plural(step.value.tokens.length, "token")} after a prompt of ` +
          `${grouped(step.value.promptTokens)}, ${step.value.tokensPerSecond.toFixed(1)} tokens a second · ` +
          `${STOPPED[step.value.stopped] ?? step.value.stopped} · memory ${size(memory)}`;
        return;
      }
      text.data += step.value.text;
      this.#output.scrollTop = this.#output.scrollHeight;
      const rate = step.value.tokens / ((performance.now() - began) / 1000);
      this.#status.textContent = `${plural(step.value.tokens, "token")}, ${rate.toFixed(1)} tokens a second`;
    }
  }
}

customElements.define("wb-generate-panel", GeneratePanel);
