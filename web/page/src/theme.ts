// SPDX-License-Identifier: Apache-2.0
// <wb-theme>: light, dark, or the system's setting. Keeps the choice in the browser's storage; without storage it lasts
// for the visit. Announces other colors with the event "theme" of the document, for what is drawn on a canvas.

import { h } from "./dom.js";

const KEY = "weighbridge.theme";
const CHOICES = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]] as const;

type Choice = (typeof CHOICES)[number][0];

function kept(): Choice {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // the page may not use storage
  }
}

const announce = (): void => void document.dispatchEvent(new Event("theme"));

function apply(choice: Choice): void {
  document.documentElement.dataset["theme"] = choice;
  announce();
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    return; // the choice lasts for this visit
  }
}

class Theme extends HTMLElement {
  connectedCallback(): void {
    const group = h("fieldset", { class: "theme" }, h("legend", { class: "visually-hidden" }, "Colors"));
    for (const [value, label] of CHOICES) {
      const input = h("input", { type: "radio", name: "theme", value, onchange: () => apply(value) });
      input.checked = value === kept();
      group.append(h("label", {}, input, h("span", {}, label)));
    }
    this.replaceChildren(group);
  }
}

apply(kept());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);
customElements.define("wb-theme", Theme);
