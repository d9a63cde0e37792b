// SPDX-License-Identifier: Apache-2.0
// <wb-file-strip>: the files of this visit. Models and adapters can be opened, the others accompany them; each can be
// removed.

import { h, replace, spelled } from "./dom.js";
import { plural } from "./format-numbers.js";
import { longName } from "./long-name.js";
import type { Role } from "./roles.js";
import { session, type Entry } from "./state.js";

const ROLES: Record<Role, string> = {
  model: "model", adapter: "adapter", vocabulary: "vocabulary", tokenizer: "tokenizer", sidecar: "sidecar",
  settings: "beside", manifest: "manifest", receipt: "receipt", ledger: "ledger", registry: "registry",
  record: "record",
};

export class FileStrip extends HTMLElement {
  draw(): void {
    const list = h("ul", { class: "files", "aria-label": "Open files" }, ...session.entries.map(chip));
    this.hidden = session.entries.length < 2;
    replace(this, list);
  }
}

customElements.define("wb-file-strip", FileStrip);

function chip(entry: Entry): HTMLElement {
  const current = entry === session.current;
  const opens = entry.role === "model" || entry.role === "adapter" || current;
  const title = `${spelled(entry.name)}, ${plural(entry.size, "byte")}`;
  const name = `${spelled(entry.name)} ${ROLES[entry.role]}`;
  const label = [h("span", { class: "file-name long-name", dir: "auto" }, ...longName(entry.name)), " ",
    h("span", { class: "file-role" }, ROLES[entry.role])];
  return h("li", { class: "file", "data-role": entry.role, "data-current": String(current) },
    opens ? h("button", { type: "button", class: "file-open", title, "aria-label": name, "aria-current": current ? "true" : null,
      onclick: () => { if (!current) session.choose(entry); } }, ...label)
      : h("span", { class: "file-open", role: "group", title, "aria-label": name }, ...label),
    h("button", { type: "button", class: "file-remove", "aria-label": `Remove ${entry.name}`,
      onclick: () => session.remove(entry) }, "×"));
}
