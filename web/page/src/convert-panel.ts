// SPDX-License-Identifier: Apache-2.0
// <wb-convert-panel>: a target and its options, then the plan with its blockers, losses (allowed kind by kind) and
// changes; then the conversion and the download.

import type { Change, FormatInfo, Loss, LossKind, Model, Plan, PlanOptions } from "./api.js";
import { button, field, h, replace } from "./dom.js";
import { downloadButtons } from "./download.js";
import { engine } from "./engine.js";
import { failureView } from "./findings.js";
import { grouped, plural, sizeText } from "./format-numbers.js";
import { Job } from "./job.js";
import { wasCancelled } from "./state.js";

/** The dtypes to cast to; offered if the target can hold them. */
const CASTS = ["f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2"];
const LISTED = 50;

const LOSSES: Record<LossKind, string> = {
  attribute: "attributes that the target has no place for",
  "attribute-type": "types of attributes, which become text",
  extra: "data beside the tensors",
  tokenizer: "the tokenizer",
  name: "names",
  shape: "shapes",
  layout: "layouts, which become dense or are left out",
  dtype: "dtypes",
  precision: "precision of values",
  alias: "sharing of bytes between tensors",
  unsupported: "tensors that this build does not support",
  overflow: "values too large for the dtype that they are cast to",
  file: "files beside the model, which the target has no place for",
  part: "files of the model that are missing",
  requantize: "precision of quantized values, rounded once more",
};

export class ConvertPanel extends HTMLElement {
  #model: Model | null = null;
  #formats: readonly FormatInfo[] = [];
  #plan: Plan | null = null;
  #allowed = new Set<LossKind>();
  #turn = 0;
  #job = new Job();
  #options = h("form", { class: "options", onsubmit: (event: Event) => event.preventDefault(),
    onchange: (event: Event) => this.#changed(event) });
  #result = h("div", { class: "stack", "aria-live": "polite" });

  async show(model: Model): Promise<void> {
    this.#model = model;
    replace(this, this.#options, this.#result, this.#job);
    try {
      this.#formats = (await (await engine()).formats()).filter((format) => format.writes);
      this.#drawOptions(this.#formats.find((format) => format.name !== model.format)?.name ?? "");
      await this.#makePlan();
    } catch (error) {
      replace(this.#result, failureView(error));
    }
  }

  disconnectedCallback(): void { void this.#plan?.close(); }

  #drawOptions(chosen: string): void {
    const target = this.#formats.find((format) => format.name === chosen);
    const select = (name: string, label: string, values: readonly (readonly [string, string])[]): HTMLElement | null =>
      (values.length < 2 ? null : field(label, h("select", { name }, ...values.map(([value, text]) =>
        h("option", { value, selected: name === "format" && value === chosen }, text)))));
    const plain = (values: readonly string[]): [string, string][] => values.map((value) => [value, value]);
    const holds = target?.holds;
    replace(this.#options,
      select("format", "Convert to", this.#formats.map(({ name, title }) => [name, title] as const)),
      select("cast", "Cast floats to", [["", "as they are"],
        ...plain(CASTS.filter((dtype) => holds?.dtypes.includes(dtype)))]),
      isQuantized(this.#model as Model) ? select("dequantize", "Quantized tensors", [["", "stay quantized"],
        ["auto", "dense, as their library decodes them (auto)"], ...plain(["f32", "f16", "bf16"])]) : null,
      target?.name === "slm"
        ? select("quantize", "Quantize weights", [["", "no"], ["q8_0", "q8_0"], ["q4_0", "q4_0"]]) : null,
      select("encoding", "Encoding", plain(holds?.encodings ?? [])),
      select("digest", "Checksum of each part", holds?.digests.length ? plain(["none", ...holds.digests]) : []),
      target?.name === "zt"
        ? select("version", "Version", [["", "the default"], ["1.1", "1.1"], ["1.2", "1.2"]]) : null);
  }

  #changed(event: Event): void {
    const control = event.target as HTMLSelectElement;
    if (control.name === "format") {
      this.#allowed.clear();
      this.#drawOptions(control.value);
      this.#options.querySelector<HTMLElement>("[name=format]")?.focus();
    }
    void this.#makePlan();
  }

  #request(): [string, PlanOptions] {
    const form = new FormData(this.#options);
    const value = (name: string): string | undefined => form.get(name)?.toString() || undefined;
    return [value("format") ?? "", { allow: [...this.#allowed], cast: value("cast"), quantize: value("quantize"),
      dequantize: value("dequantize") as PlanOptions["dequantize"],
      encoding: value("encoding"), digest: value("digest"), version: value("version") }];
  }

  async #makePlan(): Promise<void> {
    const model = this.#model as Model;
    this.#turn += 1;
    const turn = this.#turn;
    const [format, options] = this.#request();
    try {
      const plan = await model.plan(format, options);
      if (turn !== this.#turn) return void plan.close();
      void this.#plan?.close();
      this.#plan = plan;
      this.#drawPlan(plan);
    } catch (error) {
      if (turn === this.#turn) replace(this.#result, failureView(error));
    }
  }

  #drawPlan(plan: Plan): void {
    const { details } = plan;
    const kinds = [...new Set(plan.losses.map((loss) => loss.kind))];
    const output = h("div", { class: "stack" });
    const convert = button("Convert", () => void this.#convert(plan, convert, output), "primary",
      { disabled: !plan.possible });
    const held = this.#result.contains(document.activeElement) ? document.activeElement?.id : "";
    replace(this.#result,
      h("section", { class: "card stack" }, h("h3", {}, "The plan"),
        h("p", {}, `${plural(details.tensors, "tensor")} into `, h("code", {}, details.output), ", ",
          plan.outputSizeExact ? "" : "about ", sizeText(details.outputSize), "."),
        plan.blockers.length > 0 ? h("div", { class: "plan-part error", "data-plan": "blockers" },
          h("h4", {}, "Prevents the conversion, whatever you allow"), changeList(plan.blockers)) : null,
        ...kinds.map((kind) => this.#lossPart(kind, plan.losses.filter((loss) => loss.kind === kind))),
        plan.changes.length > 0 ? h("details", { class: "plan-part", "data-plan": "changes" },
          h("summary", {}, `${plural(plan.changes.length, "change")} without loss`), changeList(plan.changes)) : null,
        kinds.length === 0 && plan.blockers.length === 0
          ? h("p", { class: "ok-text" }, "Nothing is lost.") : null,
        h("div", { class: "row" }, convert, plan.possible ? null : h("span", { class: "quiet" },
          plan.blockers.length > 0 ? "Try another format or other options."
            : "Allow the losses above first."))), output);
    if (held) document.getElementById(held)?.focus();
  }

  #lossPart(kind: LossKind, losses: Loss[]): HTMLElement {
    const box = h("input", { type: "checkbox", id: `allow-${kind}`, value: kind, onchange: () => {
      if (box.checked) this.#allowed.add(kind);
      else this.#allowed.delete(kind);
      void this.#makePlan();
    } });
    box.checked = losses.every((loss) => loss.allowed);
    return h("div", { class: "plan-part warning", "data-plan": "losses", "data-kind": kind },
      h("label", { class: "check" }, box, h("span", {}, "Lose ", LOSSES[kind] ?? kind, " ", h("code", {}, kind))),
      changeList(losses));
  }

  async #convert(plan: Plan, start: HTMLButtonElement, place: HTMLElement): Promise<void> {
    start.disabled = true;
    replace(place);
    try {
      const output = await this.#job.run("Converting", (options) => plan.convert({ ...options, onLoss: () => {} }));  // the plan above lists them
      replace(place, h("p", { class: "ok-text" }, "Written, read back and compared."), downloadButtons(output));
    } catch (error) {
      replace(place, wasCancelled(error) ? h("p", {}, "Cancelled; nothing was kept.") : failureView(error));
    } finally {
      start.disabled = false;
    }
  }
}

customElements.define("wb-convert-panel", ConvertPanel);

const isQuantized = ({ inspection, tensors }: Model): boolean =>
  inspection.schemes !== undefined || tensors.some(({ layout }) => layout.startsWith("quantized"));

export function changeList(changes: readonly Change[]): HTMLElement {
  return h("ul", { class: "changes" },
    ...changes.slice(0, LISTED).map(({ subject, from, to }) => h("li", {}, h("code", {}, subject), " ",
      h("span", {}, from), " → ", h("span", {}, to))),
    changes.length > LISTED ? h("li", { class: "quiet" }, `and ${grouped(changes.length - LISTED)} more`) : null);
}
