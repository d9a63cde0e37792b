// SPDX-License-Identifier: Apache-2.0
// <wb-admission-panel>: the records beside an .slm file. Shows four checks, each passed, refused with its findings, or
// waiting for a file; then the adapters. Those that may be offered can be switched on; the others say why not.

import type { Admission, AdmissionAdapter, AdmissionCheck } from "./api.js";
import { button, h, replace } from "./dom.js";
import { engine } from "./engine.js";
import { failureView, findingsView } from "./findings.js";
import { Job } from "./job.js";
import { session, wasCancelled } from "./state.js";

const STEPS: { step: AdmissionCheck["step"]; title: string; missing: string }[] = [
  { step: "manifest", title: "Manifest", missing: "Drop its MiniModel manifest (NAME.minimodel) to check it." },
  { step: "artifact", title: "Artifact", missing: "The file itself was not checked." },
  { step: "receipt", title: "Import receipt", missing: "Drop its NAME.minimodel-receipt to check it." },
  { step: "registry", title: "Registry",
    missing: "Drop selector.registry and promotion.ledger: no adapter is offered without them." },
];

export class AdmissionPanel extends HTMLElement {
  #job = new Job();
  #result = h("div", { class: "stack", "aria-live": "polite" });

  show(): void {
    replace(this, this.#job, this.#result);
    void this.#weigh();
  }

  async #weigh(): Promise<void> {
    const source = session.current?.source;
    if (!(source instanceof File)) {
      replace(this.#result, h("p", { class: "quiet" }, "Only a single file can be admitted."));
      return;
    }
    try {
      const adapters = session.ofRole("adapter");
      const admission = await this.#job.run("Checking the records", async ({ signal }) => (await engine()).admission({
        artifact: source, manifest: session.companion("manifest"), receipt: session.companion("receipt"),
        ledger: session.companion("ledger"), registry: session.companion("registry"), adapters }, { signal }));
      this.#draw(admission, adapters);
    } catch (error) {
      replace(this.#result, wasCancelled(error) ? h("p", {}, "Cancelled.") : failureView(error),
        button("Check again", () => void this.#weigh()));
    }
  }

  #draw(admission: Admission, files: readonly File[]): void {
    replace(this.#result,
      h("ol", { class: "steps" }, ...STEPS.map(({ step, title, missing }) =>
        stepView(title, missing, given(step) ? admission.checks.find((check) => check.step === step) : undefined))),
      h("section", { class: "stack" }, h("h3", {}, "Adapters"), admission.adapters.length === 0
        ? h("p", { class: "quiet" }, "Drop adapter packages (.adp1, .asp1, .alr1) to see which may be offered.")
        : h("ul", { class: "adapters" }, ...admission.adapters.map((adapter, at) => adapterView(adapter, files[at])))));
  }
}

customElements.define("wb-admission-panel", AdmissionPanel);

/** Whether the step's record was dropped on the page. A missing record is not a refusal, though the core fails it. */
const given = (step: AdmissionCheck["step"]): boolean => step === "artifact" || session.companion(step) !== undefined;

function stepView(title: string, missing: string, check: AdmissionCheck | undefined): HTMLElement {
  const state = check === undefined ? "absent" : check.passed ? "ok" : "error";
  const words = { absent: "not here", ok: "passed", error: "refused" }[state];
  return h("li", { class: `card step ${state}`, "data-step": title.toLowerCase(), "data-state": state },
    h("div", { class: "row" }, h("h3", {}, title), h("span", { class: `badge ${state}` }, words)),
    check === undefined ? h("p", { class: "quiet" }, missing) : null,
    check && check.findings.length > 0 ? findingsView(check.findings, undefined, null) : null);
}

function adapterView(adapter: AdmissionAdapter, file: File | undefined): HTMLElement {
  const box = h("input", { type: "checkbox", role: "switch", disabled: !adapter.offered || !file, onchange: () => {
    const others = session.adapters.filter((other) => other !== file);
    session.adapt(box.checked && file ? [...others, file] : others);
  } });
  box.checked = file !== undefined && session.adapters.includes(file);
  return h("li", { class: "adapter", "data-offered": String(adapter.offered) },
    h("label", { class: "check" }, box, h("code", {}, adapter.path)),
    h("span", { class: `badge ${adapter.offered ? "ok" : "absent"}` },
      adapter.offered ? "may be offered" : "not offered"),
    h("p", { class: adapter.offered ? "quiet" : "" }, adapter.reason, " ", h("code", {}, adapter.rule)));
}
