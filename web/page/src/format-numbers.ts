// SPDX-License-Identifier: Apache-2.0
// Formats numbers as the command does: digits in groups of three, binary units, shapes in brackets; offsets in both bases,
// reals in six digits.

import { h } from "./dom.js";

/** Keeps a number and its unit on one line. */
const BLANK = "\u00a0";
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** 1132800 as "1,132,800". */
export function grouped(value: number | bigint): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** "1.1 MiB", "512 B": size_text() of cli/output.cc. */
export function size(bytes: number): string {
  let whole = bytes;
  let rest = 0; // in 1024ths of the unit
  let unit = 0;
  for (; whole >= 1024; unit += 1) {
    rest = whole % 1024;
    whole = Math.floor(whole / 1024);
  }
  const tenths = Math.floor((rest * 10 + 512) / 1024);
  if (tenths === 10) whole += 1;
  return `${whole}${unit > 0 && whole < 100 ? `.${tenths % 10}` : ""}${BLANK}${UNITS[unit]}`;
}

/** The size, with the exact number of bytes as its title. */
export function sizeText(bytes: number): HTMLElement {
  return h("span", { class: "number", title: plural(bytes, "byte") }, size(bytes));
}

const COUNTS = ["", "K", "M", "G", "T"];

/** "22.7 M", with the exact number as its title: short_number() of cli/table.cc. */
export function parametersText(count: number): HTMLElement {
  let value = count;
  let unit = 0;
  while (value >= 999.5 && unit + 1 < COUNTS.length) {
    value /= 1000;
    unit += 1;
  }
  const text = unit === 0 ? String(count) : `${value.toFixed(value < 99.95 ? 1 : 0)}${BLANK}${COUNTS[unit]}`;
  return h("span", { class: "number", title: plural(count, "parameter") }, text);
}

/** "100 (0x64)" */
export function offset(value: number): string {
  return value < 10 ? String(value) : `${grouped(value)} (0x${value.toString(16)})`;
}

export function shape(dims: readonly number[] | null): string {
  return dims === null ? "?" : `[${dims.join(", ")}]`;
}

/** A real number in at most six significant digits; "nan" and "inf" come as text from the core. */
export function real(value: number | string | null): string {
  if (value === null) return "–";
  if (typeof value === "string") return value;
  if (Object.is(value, -0)) return "-0";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "-∞";
  const text = Number(value.toPrecision(6));
  const magnitude = Math.abs(text);
  return magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e7) ? text.toExponential() : String(text);
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.min(100, Math.floor((part / whole) * 100))}%` : "";
}

/** The part of a whole, "58%" or "<1%": as the command says it in "by size". */
export function share(part: number, whole: number): string {
  const hundredths = whole > 0 ? (part * 100) / whole : 0;
  return hundredths < 1 ? "<1%" : `${Math.floor(hundredths)}%`;
}

export function duration(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)}${BLANK}ms` : `${(milliseconds / 1000).toFixed(1)}${BLANK}s`;
}
