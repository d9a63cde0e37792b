// SPDX-License-Identifier: Apache-2.0
// <wb-tabs>: a tablist with its panels. A panel is built when it is first opened and then kept, so that switching tabs
// loses nothing. Arrow keys, Home and End move between tabs; only the selected tab is in the Tab order.

import { h } from "./dom.js";

export interface Tab {
  id: string;
  label: string;
  count?: string;
  build: () => HTMLElement;
}

let groups = 0;

export class Tabs extends HTMLElement {
  #tabs: Tab[] = [];
  #buttons = new Map<string, HTMLButtonElement>();
  #panels = new Map<string, HTMLElement>();
  #chosen = "";
  #prefix = "";

  get chosen(): string { return this.#chosen; }

  /** Selects the first tab. */
  setTabs(label: string, tabs: Tab[]): void {
    groups += 1;
    this.#prefix = `tabs-${groups}`;
    this.#tabs = tabs;
    this.#buttons.clear();
    this.#panels.clear();
    const list = h("div", { class: "tablist", role: "tablist", "aria-label": label,
      onkeydown: (event: KeyboardEvent) => this.#key(event) });
    this.replaceChildren(list);
    for (const tab of tabs) {
      const panelId = `${this.#prefix}-${tab.id}`;
      const button = h("button", { type: "button", role: "tab", id: `${panelId}-tab`, "aria-controls": panelId,
        "data-tab": tab.id, onclick: () => this.choose(tab.id) }, tab.label,
        tab.count ? h("span", { class: "count number" }, tab.count) : null);
      const panel = h("section", { role: "tabpanel", id: panelId, "aria-labelledby": button.id, tabindex: "-1",
        hidden: true });
      this.#buttons.set(tab.id, button);
      this.#panels.set(tab.id, panel);
      list.append(button);
      this.append(panel);
    }
    this.choose(tabs[0]?.id ?? "");
  }

  /** Does nothing if there is no such tab. */
  choose(id: string): void {
    if (!this.#buttons.has(id)) return;
    this.#chosen = id;
    for (const tab of this.#tabs) {
      const on = tab.id === id;
      const button = this.#buttons.get(tab.id);
      const panel = this.#panels.get(tab.id);
      button?.setAttribute("aria-selected", String(on));
      button?.setAttribute("tabindex", on ? "0" : "-1");
      if (on) button?.scrollIntoView({ block: "nearest", inline: "nearest" });
      if (panel) {
        panel.hidden = !on;
        if (on && !panel.hasChildNodes()) panel.append(tab.build());
      }
    }
    this.dispatchEvent(new CustomEvent("tab", { detail: id }));
  }

  #key(event: KeyboardEvent): void {
    const at = this.#tabs.findIndex((tab) => tab.id === this.#chosen);
    const last = this.#tabs.length - 1;
    const moves: Record<string, number> = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1,
      Home: 0, End: last };
    const to = this.#tabs[moves[event.key] ?? -1];
    if (!to) return;
    event.preventDefault();
    this.choose(to.id);
    this.#buttons.get(to.id)?.focus();
  }
}

customElements.define("wb-tabs", Tabs);
