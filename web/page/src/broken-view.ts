// SPDX-License-Identifier: Apache-2.0
// <wb-broken-view>: a file that could not be opened. Shows the error of opening it first; the full check then lists
// everything that is wrong.

import type { Verdict } from "./api.js";
import { button, h, replace } from "./dom.js";
import { failureView, findingsView } from "./findings.js";
import { plural } from "./format-numbers.js";
import { fileBytes, hexView } from "./hex-view.js";
import { Job } from "./job.js";
import { sentenceOf, session, VERIFIED_AT_ONCE, wasCancelled, type Entry } from "./state.js";

export class BrokenView extends HTMLElement {
  #entry: Entry | null = null;
  #job = new Job();
  #said = h("div", { class: "card stack" });
  #again = h("div", { class: "row" });

  show(entry: Entry): void {
    this.#entry = entry;
    const file = entry.source instanceof File ? entry.source : null;
    replace(this.#said, failureView(entry.failure, file));
    replace(this, this.#said, this.#job, this.#again, file && file.size > 0
      ? h("section", { class: "card stack" }, h("h3", {}, "Bytes of the file"), hexView(fileBytes(file, entry)))
      : null);
    const kind = entry.failure?.kind;
    if (kind !== "malformed" && kind !== "unsupported" && kind !== "limit") {
      replace(this.#again, button("Open again", () => session.again(entry), "primary"));
    } else if (entry.size <= VERIFIED_AT_ONCE) void this.#verify();
    else this.#offer();
  }

  #offer(): void {
    replace(this.#again, button("Verify: list everything that is wrong", () => void this.#verify(), "primary"));
  }

  async #verify(): Promise<void> {
    const entry = this.#entry as Entry;
    replace(this.#again);
    try {
      this.#tell(entry, await this.#job.run("Verifying", (options) => session.verify(entry, options)));
    } catch (error) {
      this.#offer();
      if (!wasCancelled(error)) this.#again.append(h("span", { class: "error-text" }, sentenceOf(error)));
    }
  }

  #tell(entry: Entry, verdict: Verdict): void {
    this.dataset["verdict"] = verdict.valid ? "valid" : "broken";
    if (verdict.findings.length === 0) return;
    const file = entry.source instanceof File ? entry.source : null;
    const count = verdict.findingsTotal ?? verdict.findings.length;
    replace(this.#said, h("div", { class: "failure", "data-kind": verdict.findings[0]?.kind ?? "malformed" },
      h("h3", {}, verdict.format ? `This ${verdict.format} file cannot be used: ${plural(count, "finding")}`
        : "This file is in no format that this build supports"),
      findingsView(verdict.findings, verdict.findingsTotal, file)));
    this.dispatchEvent(new CustomEvent("verdict", { detail: verdict, bubbles: true }));
  }
}

customElements.define("wb-broken-view", BrokenView);
