// SPDX-License-Identifier: Apache-2.0
// Options in the core's form: by the names of the library's table of options (docs/options.md), which the core checks.

/** Pairs of texts are a flat list. */
export type CoreOptions = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** What calls handle themselves. */
const kOwn = new Set(["signal", "onProgress", "name", "beside", "tokenizer", "vocabulary"]);

/** `maxLength` becomes `max-length`; what is absent is left out. */
export function coreOptions(options: object): CoreOptions {
  const out: Record<string, CoreOptions[string]> = {};
  for (const [key, value] of Object.entries(options) as [string, unknown][]) {
    if (value === undefined || value === null || kOwn.has(key)) continue;
    const name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (Array.isArray(value)) out[name] = value.map(String);
    else if (typeof value === "object") out[name] = Object.entries(value).flat().map(String);
    else if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") out[name] = value;
  }
  return out;
}
