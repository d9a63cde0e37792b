// SPDX-License-Identifier: Apache-2.0
// Findings as in the command: severity, sentence, rule, offset, expected, found; and the bytes around the offset, read
// from the file even if it is broken.

import type { Finding, Hint } from "./api.js";
import { WeighbridgeError } from "./api.js";
import { button, facts, h, type Child } from "./dom.js";
import { grouped, offset, plural } from "./format-numbers.js";
import { fileBytes, hexView } from "./hex-view.js";
import { sentenceOf } from "./state.js";

const BEFORE = 64;
/** How many findings show their bytes at once. */
const OPEN_HEX = 1;
const FIRST = 100;

function detail(finding: Finding, file: File | null, open: boolean): HTMLElement {
  const rows: [string, Child][] = [["Rule", h("code", {}, finding.rule)]];
  if (finding.file !== null) rows.push(["File", h("code", {}, finding.file)]);
  if (finding.offset !== null) rows.push(["Offset", h("span", { class: "number" }, offset(finding.offset))]);
  if (finding.tensor !== null) rows.push(["Tensor", h("code", {}, finding.tensor)]);
  if (finding.expected) rows.push(["Expected", h("code", {}, finding.expected)]);
  if (finding.found) rows.push(["Found", h("code", {}, finding.found)]);
  if (finding.hint) rows.push([HINTS[finding.hint.what], h("code", {}, hintText(finding.hint))]);
  const item = h("li", { class: `finding ${finding.severity}`, "data-rule": finding.rule },
    h("p", { class: "finding-head" }, h("span", { class: `badge ${finding.severity}` }, finding.severity),
      h("span", { class: "finding-message" }, finding.message)),
    facts(rows, "compact"));
  const at = finding.offset;
  // Skip a finding in a sidecar file: its offset does not apply to this file.
  const here = finding.file === null || finding.file === file?.name;
  if (file && here && at !== null) item.append(bytesAround(file, at, open));
  return item;
}

const HINTS: Record<Hint["what"], string> = { limit: "Limit", option: "Option", size: "Whole file", file: "Missing file" };

function hintText(hint: Hint): string {
  if (hint.what === "size") return `${hint.value} bytes`;
  return hint.value === null ? hint.name : `${hint.name}=${hint.value}`;
}

function bytesAround(file: File, at: number, open: boolean): HTMLElement {
  if (at >= file.size) {
    return h("p", { class: "quiet" },
      `The offset is at or past the file's end, ${grouped(file.size)}: there are no bytes to show.`);
  }
  const show = (): HTMLElement => {
    const from = Math.max(0, at - BEFORE);
    return hexView(fileBytes(file), from - (from % 16), at);
  };
  if (open) return show();
  const place = h("div", {});
  place.append(button("Show the bytes there", () => place.replaceChildren(show()), "small"));
  return place;
}

/** The list; `total` is the number of findings if not all are listed. */
export function findingsView(findings: readonly Finding[], total: number | undefined, file: File | null): HTMLElement {
  const list = h("ol", { class: "findings" });
  const add = (from: number, to: number): void => findings.slice(from, to).forEach((finding, index) =>
    list.append(detail(finding, file, from + index < OPEN_HEX)));
  add(0, FIRST);
  const box = h("div", { class: "findings-box" }, list);
  if (findings.length > FIRST) {
    const more = button(`Show all ${grouped(findings.length)}`, () => { add(FIRST, findings.length); more.remove(); });
    box.append(more);
  }
  const unlisted = (total ?? findings.length) - findings.length;
  if (unlisted > 0) {
    box.append(h("p", { class: "quiet" }, `and ${plural(unlisted, "more finding")} that the core did not list.`));
  }
  return box;
}

const KINDS: Record<string, string> = {
  malformed: "This file breaks its format",
  limit: "This file is larger than a limit allows",
  unsupported: "This build does not support something in this file",
  io: "The bytes could not be read",
  misuse: "This cannot be done",
  cancelled: "Cancelled",
  memory: "Out of memory",
  lost: "The worker stopped",
  internal: "Internal error in weighbridge",
};

/** Shows any thrown value. */
export function failureView(error: unknown, file: File | null = null): HTMLElement {
  const known = error instanceof WeighbridgeError ? error : null;
  const findings = known?.findings ?? [];
  return h("div", { class: "failure", role: "alert", "data-kind": known?.kind ?? "internal" },
    h("h3", {}, KINDS[known?.kind ?? "internal"]),
    findings.length > 0 ? findingsView(findings, undefined, file) : h("p", {}, sentenceOf(error)));
}
