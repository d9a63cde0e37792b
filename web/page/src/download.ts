// SPDX-License-Identifier: Apache-2.0
// Offers a finished output as downloads, one per file.

import type { Output } from "./api.js";
import { button, h } from "./dom.js";
import { size } from "./format-numbers.js";

/** The browser needs the URL for a moment after the click. */
const KEEP = 60_000;

export async function download(output: Output): Promise<void> {
  const url = URL.createObjectURL(await output.blob());
  h("a", { href: url, download: output.name.split("/").pop() ?? output.name }).click();
  setTimeout(() => URL.revokeObjectURL(url), KEEP);
}

export function downloadButtons(output: Output): HTMLElement {
  return h("div", { class: "row" }, ...output.files.map((file) =>
    button(`Download ${file.name} (${size(file.size)})`, () => void download(file), "primary")));
}
