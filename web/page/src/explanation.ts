// SPDX-License-Identifier: Apache-2.0
// What a byte of a file is, as the library's explain has it: the spans around it from the file to the field, what the
// field says, and the rules that it breaks.

import type { ExplainedSpan, Explanation } from "./api.js";
import { h } from "./dom.js";
import { grouped, offset, plural } from "./format-numbers.js";

/** The last span: they are listed from the outermost on. */
export function innermost({ spans, offset: at, length, size }: Explanation): { offset: number; size: number } {
  const last = spans.at(-1);
  // A span of the whole file says nothing about the bytes beside this one.
  return last && last.size < size ? last : { offset: at, size: length };
}

const KINDS: Record<ExplainedSpan["kind"], string> = { file: "File", structure: "Structure", entry: "Entry",
  field: "Field", tensor: "Tensor", block: "Block", element: "Element", padding: "Padding", unclaimed: "Unclaimed" };

const LONGEST = 300;
const cut = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);

const range = ({ offset: from, size }: ExplainedSpan): string =>
  (size === 1 ? `byte ${grouped(from)}` : `${grouped(from)} to ${grouped(from + size - 1)}, ${plural(size, "byte")}`);

export function explanationView(found: Explanation, at: number): HTMLElement {
  const spans = found.spans.map((span, index) => h("li", { class: "span", "data-kind": span.kind,
    "aria-current": index === found.spans.length - 1 ? "true" : null },
    h("span", { class: "span-kind" }, KINDS[span.kind]),
    h("span", { class: "span-what" }, h("code", {}, cut(span.what)), span.value === null ? null : " ",
      span.value === null ? null : h("span", { class: "span-value" }, cut(span.value))),
    h("span", { class: "number quiet" }, range(span))));
  const findings = found.findings.map(({ severity, rule, message }) => h("li", { class: "row" },
    h("span", { class: `badge ${severity}` }, severity), h("span", {}, message), h("code", {}, rule)));
  return h("div", { class: "stack", role: "status", "data-explained": at },
    h("p", { class: "number quiet" }, `Byte ${offset(at)}`),
    h("ol", { class: "spans" }, ...spans),
    findings.length > 0 ? h("ul", { class: "stack" }, ...findings) : null);
}
