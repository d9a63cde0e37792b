// SPDX-License-Identifier: Apache-2.0
// Formats numbers: narrow digit groups, binary units, offsets in both bases, reals in six digits, the same way on the
// whole page.

import { h } from "./dom.js";

const THIN = "\u202f";
const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** 1132800 as "1 132 800", with narrow no-break spaces. */
export function grouped(value: number | bigint): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** "1.08 MiB": three significant digits. */
export function size(bytes: number): string {
  if (bytes < 1024) return plural(bytes, "byte");
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1023.5 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)}${THIN}${UNITS[unit]}`;
}

/** The size, with the exact number of bytes as its title. */
export function sizeText(bytes: number): HTMLElement {
  return h("span", { class: "number", title: plural(bytes, "byte") }, size(bytes));
}

const COUNTS = ["", "K", "M", "B", "T"];

/** "22.7 M", with the exact number as its title; small numbers are exact. */
export function parametersText(count: number): HTMLElement {
  let value = count;
  let unit = 0;
  while (value >= 999.5 && unit + 1 < COUNTS.length) {
    value /= 1000;
    unit += 1;
  }
  const text = unit === 0 ? String(count)
    : `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)}${THIN}${COUNTS[unit]} (${grouped(count)})`;
  return h("span", { class: "number", title: plural(count, "parameter") }, text);
}

/** "100 (0x64)" */
export function offset(value: number): string {
  return value < 10 ? String(value) : `${grouped(value)} (0x${value.toString(16)})`;
}

export function shape(dims: readonly number[] | null): string {
  if (dims === null) return "unknown";
  return dims.length === 0 ? "scalar" : dims.map(grouped).join(" × ");
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
  return whole > 0 ? `${Math.min(100, Math.floor((part / whole) * 100))}${THIN}%` : "";
}

export function duration(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)}${THIN}ms` : `${(milliseconds / 1000).toFixed(1)}${THIN}s`;
}
