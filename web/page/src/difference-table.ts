// SPDX-License-Identifier: Apache-2.0
// <wb-difference-table>: the tensors that are not the same in two models, with the numbers of how they changed. Owns
// the words for what happened to a tensor, and how its numbers are spelled.

import type { TensorDiff, ValueDiff } from "./api.js";
import { grouped, plural, real } from "./format-numbers.js";
import { GridTable, padded, type Column } from "./grid-table.js";

type Verdict = TensorDiff["verdict"];

const ALONE: Partial<Record<Verdict, string>> = { "only-a": "only in A", "only-b": "only in B",
  "incomparable": "not comparable" };

/** Each thing that happened to a tensor, in one or two words. */
export function kindsOf(tensor: TensorDiff): string[] {
  const kinds = tensor.changes.map((change) => (change === "bits-only" ? "other bits" : change));
  const alone = ALONE[tensor.verdict];
  if (alone) return [alone, ...kinds.filter(() => tensor.verdict === "incomparable")];
  return kinds.includes("changed") || !tensor.values ? kinds : [...kinds, "equal values"];
}

export const nameOf = ({ a, b }: TensorDiff): string => (a ?? b)?.name ?? "";

/** Both names, if they differ. */
export const bothNames = ({ a, b }: TensorDiff): string =>
  (a && b && a.name !== b.name ? `${a.name} → ${b.name}` : (a ?? b)?.name ?? "");

/** The share of elements that changed: never 100% while one did not, and never 0% once one has. */
export function share({ changed, elements }: ValueDiff): string {
  if (changed === 0) return "0%";
  if (changed === elements) return "100%";
  const part = (100 * changed) / elements;
  return part < 0.01 ? "<0.01%" : `${Math.min(part, 99.99).toFixed(2)}%`;
}

/** Tells 0.999999 from 1. */
export function cosine({ cosine: value, changed }: ValueDiff): string {
  if (typeof value !== "number") return real(value);
  const distance = 1 - value;
  if (changed === 0 || distance >= 5e-7) return value.toFixed(6);
  return distance <= 0 ? "1" : `1 − ${distance.toExponential(0)}`;
}

/** Three digits, for a table. */
export function short(value: number | string | null): string {
  return typeof value === "number" ? real(Number(value.toPrecision(3))) : real(value);
}

export const decibels = ({ snr }: ValueDiff): string =>
  (typeof snr === "number" ? snr.toFixed(1) : snr === "inf" ? "∞" : real(snr));

/** The indices of an element in each dimension. */
export function placeText(element: number, dims: readonly number[]): string {
  const place: number[] = [];
  let rest = element;
  for (const dim of [...dims].reverse()) {
    place.unshift(rest % dim);
    rest = Math.floor(rest / dim);
  }
  return `[${place.join(", ")}]`;
}

/** Numbers sort by their size; what has none is past all of them, as in the command's list. */
const rank = (value: number | string | null | undefined): number =>
  (typeof value === "number" ? value : value === "-inf" ? -Infinity : Infinity);

function numbers(key: string, label: string, title: string, cell: (values: ValueDiff) => string,
  by: (values: ValueDiff) => number | string | null): Column<TensorDiff> {
  return { key, label, title, numeric: true, cell: ({ values }) => (values ? cell(values) : "–"),
    rank: ({ values }) => (values ? rank(by(values)) : Infinity) };
}

const COLUMNS: Column<TensorDiff>[] = [
  { key: "name", label: "Tensor", rank: (tensor) => padded(nameOf(tensor)) },
  { key: "kind", label: "What", cell: (tensor) => kindsOf(tensor).join(", "),
    rank: (tensor) => kindsOf(tensor).join(" ") },
  numbers("max", "Max abs", "The largest |B − A|",
    ({ maxAbs: value }) => short(value), ({ maxAbs: value }) => value),
  numbers("relative", "Max rel", "The largest |B − A| / |A|, where A is not zero",
    ({ maxRelative: value }) => short(value), ({ maxRelative: value }) => value),
  numbers("rms", "RMS", "The root of the mean square of B − A", ({ rms }) => short(rms), ({ rms }) => rms),
  numbers("cosine", "Cosine", "The similarity of A and B as vectors", cosine, ({ cosine: value }) => value),
  numbers("snr", "SNR dB", "Signal to noise, in decibels", decibels, ({ snr }) => snr),
  numbers("share", "Changed", "The share of the elements that changed", share,
    ({ changed, elements }) => (elements > 0 ? changed / elements : 0)),
  { key: "first", label: "First", title: "The first element that changed", numeric: true,
    cell: ({ values, a }) => (values && values.first !== null ? placeText(values.first, a?.shape ?? []) : "–"),
    rank: ({ values }) => values?.first ?? Infinity },
];

export class DifferenceTable extends GridTable<TensorDiff> {
  constructor() {
    super({ label: "Tensors that differ", columns: COLUMNS, searchLabel: "Search differences by name",
      filterLabel: "Filter by what happened", every: "Every difference", names: bothNames, kinds: kindsOf,
      count: (shown, all) => (shown.length === all ? plural(all, "tensor")
        : `${grouped(shown.length)} of ${plural(all, "tensor")}`),
      none: "No tensor differs." });
  }
}

customElements.define("wb-difference-table", DifferenceTable);
