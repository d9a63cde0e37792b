// SPDX-License-Identifier: Apache-2.0
// <wb-welcome>: the first view. What the page does, that nothing leaves the machine, how to begin, supported formats.

import { button, h, replace } from "./dom.js";
import { engine } from "./engine.js";
import { sampleFile } from "./sample.js";
import { sentenceOf, session } from "./state.js";

export class Welcome extends HTMLElement {
  connectedCallback(): void {
    const formats = h("ul", { class: "formats", "aria-busy": "true" },
      h("li", { class: "quiet" }, "Loading the core …"));
    replace(this,
      h("div", { class: "welcome-words" },
        h("h1", {}, "Inspect, verify, convert, compare and run model files."),
        h("p", { class: "lead" }, "Open a model file to see what is in it, check its structure and every checksum that it " +
          "carries, run it, or convert it to another format. Everything happens on this machine: nothing is ever uploaded.")),
      h("wb-file-drop" as "div", { class: "drop" }),
      h("p", { class: "sample-line" }, "No file at hand? ",
        button("Try a small sample", () => void session.add([sampleFile()], null), "link", { id: "sample" })),
      h("section", { class: "knows" }, h("h2", {}, "Supported formats"), formats));
    void this.#list(formats);
  }

  async #list(place: HTMLElement): Promise<void> {
    try {
      const formats = await (await engine()).formats();
      replace(place, ...formats.map(({ name, title, extensions, versions, reads, writes, folder }) => h("li", {},
        h("strong", {}, title), h("code", {}, folder ? "folder" : extensions.map((end) => `.${end}`).join(" ") || name),
        h("span", { class: "quiet" }, versions),
        h("span", { class: "quiet" },
          [reads ? "reads" : "", writes ? "writes" : ""].filter(Boolean).join(", ")))));
    } catch (error) {
      replace(place, h("li", { class: "error-text" }, `${sentenceOf(error)} `,
        button("Try again", () => void this.#list(place), "small")));
    }
    place.removeAttribute("aria-busy");
  }
}

customElements.define("wb-welcome", Welcome);
