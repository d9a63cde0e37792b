// SPDX-License-Identifier: Apache-2.0
// The role of each dropped file: a model to open, or something that accompanies one. Recognizes records of the chain by
// their first lines, the rest by name. A wrong guess costs a click, never a wrong result, because the core checks the
// bytes itself.

export type Role = "model" | "adapter" | "vocabulary" | "tokenizer" | "sidecar" | "settings" | "manifest" | "receipt" |
  "ledger" | "registry" | "record";

const HEAD = 4096;

const RECORDS: [RegExp, Role][] = [
  [/^registry_version=/m, "registry"],
  [/^ledger_version=/m, "ledger"],
  [/^receipt_version=/m, "receipt"],
  [/^manifest\.kind=minimodel\.manifest\r?$/m, "manifest"],
  [/^(manifest_version|record|schema_version)=/m, "record"],
];

/** What opens the whole of a model in several files, where another file opens only its part: an index, or the first file of a GGUF. */
export const INDEX = /\.(safetensors|bin)\.index\.json$|\.weights\.json$|-00001-of-\d{5}\.gguf$/i;

const NAMES: [RegExp, Role][] = [
  [INDEX, "model"],
  [/\.(adp1|asp1|alr1)$/i, "adapter"],
  [/\.minimodel$/i, "manifest"],
  [/\.minimodel-receipt$/i, "receipt"],
  [/\.ledger$/i, "ledger"],
  [/\.registry$/i, "registry"],
  [/\.khm\.json$|\.data$|_data$/i, "sidecar"],
  [/^(.*[._-])?vocab\.txt$/i, "vocabulary"],
  [/^tokenizer\.json$|\.tokenizer$|^tok[^/]*\.bin$/i, "tokenizer"],
  [/\.slm\.[a-z-]+$/i, "record"],
  [/\.(json|txt|md)$/i, "settings"],
];

export async function roleOf(file: File): Promise<Role> {
  const byName = NAMES.find(([pattern]) => pattern.test(file.name))?.[1];
  if (byName) return byName;
  let head: string;
  try {
    head = await file.slice(0, HEAD).text();
  } catch {
    return "model"; // opening it will report the read error
  }
  if (/^(ADP1|ASP1|ALR1)/.test(head)) return "adapter";
  if (head.includes("\0")) return "model";
  return RECORDS.find(([pattern]) => pattern.test(head))?.[1] ?? "model";
}
