// SPDX-License-Identifier: Apache-2.0
// <wb-app>: the frame of the page. Shows the header, the files, and for the current file either its tabs or what is
// wrong with it. Decides which panels a model has.

import "./theme.js";
import "./welcome.js";
import type { Model, Verdict } from "./api.js";
import { BrokenView } from "./broken-view.js";
import { ComparePanel } from "./compare-panel.js";
import { ConvertPanel } from "./convert-panel.js";
import { button, h, replace } from "./dom.js";
import { EditPanel } from "./edit-panel.js";
import { couldEmbed, EmbedPanel } from "./embed-panel.js";
import { engine } from "./engine.js";
import { chooseFiles, fileInput, listenForDrops } from "./file-drop.js";
import { FileStrip } from "./file-strip.js";
import { grouped, plural, sizeText } from "./format-numbers.js";
import { couldGenerate, GeneratePanel } from "./generate-panel.js";
import { fileBytes, hexView } from "./hex-view.js";
import { Job } from "./job.js";
import { notify } from "./notice.js";
import { Overview } from "./overview-panel.js";
import { sentenceOf, session, wasCancelled, type Entry } from "./state.js";
import { Tabs, type Tab } from "./tabs.js";
import { TensorsPanel } from "./tensors-panel.js";

class App extends HTMLElement {
  #strip = new FileStrip();
  #job = new Job();
  #view = h("div", { class: "view" });
  #main = h("main", { id: "main", class: "frame" });
  #core = h("span", { class: "core quiet" });
  #spoken = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  #open = button("Open files", chooseFiles, "small", { hidden: true });
  #turn = 0;
  #tab = "overview";

  connectedCallback(): void {
    const home = h("button", { type: "button", class: "brand", title: "Remove all files",
      "aria-label": "weighbridge: to the first view", onclick: () => session.clear() },
      h("img", { src: "favicon.svg", alt: "", width: 22, height: 22 }), h("span", {}, "weighbridge"));
    replace(this, h("a", { class: "skip", href: "#main" }, "Skip to the content"),
      h("header", { class: "bar" }, h("div", { class: "frame row" }, home, this.#core, this.#open,
        h("wb-theme" as "div"))),
      fileInput, this.#main, h("wb-notices" as "div"), this.#spoken);
    listenForDrops(document.body);
    session.addEventListener("change", () => this.#draw());
    this.#draw();
    engine().then(({ version }) => {
      this.#core.textContent = `core ${version.version}${version.simd ? ", SIMD" : ""}`;
      this.#core.title = version.commit;
    }, (error: unknown) => notify(sentenceOf(error), "error"));
  }

  #draw(): void {
    const entry = session.current;
    this.#open.hidden = entry === null;
    this.#turn += 1;
    if (!entry) {
      this.#job.cancel();
      this.dataset["state"] = "welcome";
      document.title = "weighbridge";
      session.comparing = false;
      replace(this.#main, h("wb-welcome" as "div"));
      return;
    }
    document.title = `${entry.name} – weighbridge`;
    this.#strip.draw();
    replace(this.#main, this.#strip, this.#job, this.#view);
    void this.#show(entry, this.#turn);
  }

  async #show(entry: Entry, turn: number): Promise<void> {
    if (!entry.model && !entry.failure) {
      this.dataset["state"] = "opening";
      replace(this.#view, heading(entry), h("p", { class: "quiet" }, "Opening …"));
      try {
        await this.#job.run("Opening", (options) => session.open(entry, options));
      } catch (error) {
        if (turn === this.#turn) this.#stopped(entry, error);
        return;
      }
    }
    if (turn !== this.#turn) return;
    if (entry.model && entry.numbers) this.#showModel(entry, entry.model, entry.numbers);
    else this.#showBroken(entry);
  }

  #stopped(entry: Entry, error: unknown): void {
    this.dataset["state"] = "stopped";
    replace(this.#view, heading(entry), h("p", {}, wasCancelled(error) ? "Opening was cancelled." : sentenceOf(error)),
      button("Open again", () => session.choose(entry), "primary"));
  }

  #showBroken(entry: Entry): void {
    this.dataset["state"] = "broken";
    const view = new BrokenView();
    replace(this.#view, heading(entry), view);
    view.show(entry);
    this.#arrived(`${entry.name} could not be opened`);
  }

  #showModel(entry: Entry, model: Model, numbers: Model): void {
    const broken = entry.verdict?.valid === false;
    this.dataset["state"] = broken ? "broken" : "open";
    const tabs = new Tabs();
    const badge = h("span", { class: "badge absent", "data-badge": "verdict" }, "not verified yet");
    const tell = (verdict: Verdict): void => {
      badge.className = `badge ${verdict.valid ? "ok" : "error"}`;
      badge.textContent = verdict.valid ? "valid" : "invalid";
    };
    if (entry.verdict) tell(entry.verdict);
    tabs.addEventListener("verdict", (event) => {
      const verdict = (event as CustomEvent<Verdict>).detail;
      if (verdict.valid === broken) this.#showModel(entry, model, numbers); // other panels apply now
      else tell(verdict);
    });
    replace(this.#view, heading(entry, model, badge), tabs);
    tabs.setTabs("Views of the file", panels(entry, model, numbers)); // builds the overview first: its check runs on any tab
    tabs.choose(this.#tab);
    session.comparing = tabs.chosen === "compare";
    tabs.addEventListener("tab", () => {
      this.#tab = tabs.chosen;
      session.comparing = tabs.chosen === "compare";
    });
    this.#arrived(`${entry.name} opened: ${model.format}, ${plural(numbers.tensors.length, "tensor")}`);
  }

  /** Announces a new view to screen readers, and moves the focus to its heading if the old view took the focus away. */
  #arrived(words: string): void {
    this.#spoken.textContent = words;
    if (document.activeElement === document.body) this.#view.querySelector("h1")?.focus({ preventScroll: true });
  }
}

function heading(entry: Entry, model: Model | null = null, badge: HTMLElement | null = null): HTMLElement {
  return h("div", { class: "file-head" }, h("h1", { class: "file-title", tabindex: "-1" }, entry.name),
    h("div", { class: "row" }, model ? h("span", { class: "badge format" }, model.format) : null, badge,
      h("span", { class: "quiet" }, sizeText(entry.size)), button("Close", () => session.remove(entry), "small",
        { "aria-label": `Close ${entry.name}` })));
}

/** Creates an element and gives it what to show. */
function shown<T extends HTMLElement>(panel: T, show: (panel: T) => void): T {
  show(panel);
  return panel;
}

/** A panel whose code is loaded only when it is first shown. */
function later(load: () => Promise<HTMLElement>): HTMLElement {
  const place = h("div", {});
  load().then((panel) => replace(place, panel), (error: unknown) => replace(place, h("p", { class: "error-text" }, sentenceOf(error))));
  return place;
}

/**
 * A file that the full check found broken can only be inspected. `numbers` is what runs and is compared; what is
 * converted and edited is what the file stores.
 */
function panels(entry: Entry, model: Model, numbers: Model): Tab[] {
  const { source } = entry;
  const usable = entry.verdict?.valid !== false;
  const tabs: (Tab | false)[] = [
    { id: "overview", label: "Overview", build: () => shown(new Overview(), (panel) => panel.show(entry)) },
    { id: "tensors", label: "Tensors", count: grouped(numbers.tensors.length),
      build: () => shown(new TensorsPanel(), (panel) => panel.show(entry, model, numbers)) },
    usable && couldGenerate(numbers) && { id: "generate", label: "Generate",
      build: () => shown(new GeneratePanel(), (panel) => panel.show(numbers)) },
    usable && couldEmbed(numbers) && { id: "similarity", label: "Similarity",
      build: () => shown(new EmbedPanel(), (panel) => panel.show(numbers)) },
    model.format === "slm" && { id: "admission", label: "Admission",
      build: () => later(async () => shown(new (await import("./admission-panel.js")).AdmissionPanel(), (panel) => panel.show())) },
    usable && { id: "convert", label: "Convert",
      build: () => shown(new ConvertPanel(), (panel) => void panel.show(model)) },
    usable && { id: "compare", label: "Compare",
      build: () => shown(new ComparePanel(), (panel) => panel.show(entry, numbers)) },
    usable && source instanceof File && { id: "edit", label: "Edit",
      build: () => shown(new EditPanel(), (panel) => panel.show(entry, model)) },
    source instanceof File && { id: "bytes", label: "Bytes",
      build: () => h("section", { class: "card" }, hexView(fileBytes(source, entry))) },
  ];
  return tabs.filter((tab) => tab !== false);
}

customElements.define("wb-app", App);
