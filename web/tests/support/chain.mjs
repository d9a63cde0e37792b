// SPDX-License-Identifier: Apache-2.0
// Makes the records of an .slm with the command, along the short path of docs/slm/walk.md: an artifact with manifest
// and receipt, an adapter for it, and the ledger and registry that offer both.

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { floats, kData, native, safetensors } from "./tools.mjs";

const kTime = "2026-01-31T12:00:00Z";

/** Sets the values of these keys in a record. */
function fill(path, values) {
  const lines = readFileSync(path, "utf8").split("\n").map((line) => {
    const key = line.split("=")[0];
    return key in values ? `${key}=${values[key]}` : line;
  });
  writeFileSync(path, lines.join("\n"));
}

/** Paths of the files made in `folder`: artifact, manifest, receipt, adapter, ledger, registry. */
export function makeChain(folder) {
  mkdirSync(join(folder, "models"), { recursive: true });
  for (const name of ["stories260K.bin", "tok512.bin"]) copyFileSync(join(kData, "llama", name), join(folder, name));
  const slm = (...args) => native(["slm", ...args, "--quiet"], { cwd: folder });
  const artifact = "models/stories.slm";
  native(["convert", "stories260K.bin", "in.safetensors", "--tokenizer", "tok512.bin", "--allow", "tokenizer,attribute-type",
    "--quiet"], { cwd: folder });
  slm("source-template", "stories260K.bin", "--tokenizer", "tok512.bin", "-o", "trained.manifest");
  fill(join(folder, "trained.manifest"), { identity: "stories260K", source_kind: "trained", license: "MIT",
    dataset: "TinyStories", training_summary: "llama2.c" });
  slm("review-safetensors-candidate", "in.safetensors", "--manifest", "trained.manifest", "-o", "review.record");
  slm("convert-safetensors-trained", "in.safetensors", "--manifest", "trained.manifest", "--review", "review.record",
    "-o", artifact);
  slm("manifest", artifact, "--source-kind", "converted-trained");
  slm("runtime-smoke", artifact);
  slm("quality-gate", "runtime-smoke", artifact);
  slm("eval-template", artifact);
  fill(join(folder, `${artifact}.cases`), { scope: "openings", safety_review: "read", "case.0.prompt": "Once upon a time",
    "case.0.max_tokens": "12", "case.0.expected": ", there was a little girl named Lily. She" });
  slm("eval", artifact);
  slm("quality-gate", "assistant-quality", artifact, "--decision", "approve", "--decided-by", "tests", "--at", kTime);
  slm("admission-record", artifact);
  writeFileSync(join(folder, "deltas.safetensors"), safetensors({ "norm.weight": { dtype: "F32", shape: [64],
    bytes: floats(Array.from({ length: 64 }, (_, at) => (at % 2 === 0 ? 0.9 : -0.9))) } }));
  slm("adapter", artifact, "deltas.safetensors", "--kind", "adp1", "-o", "models/shift.adp1");
  slm("promotion-ledger", "append", "models/promotion.ledger", artifact, "models/shift.adp1");
  slm("selector-registry", "models/promotion.ledger");
  slm("minimodel-template", artifact, "--at", kTime);
  fill(join(folder, "models/stories.minimodel"), { "model.id": "stories", "model.version": "1.0.0",
    "model_card.route": "cards/stories", "publisher.id": "example", "publisher.key_id": "example-1",
    "license.route": "licenses/mit" });
  slm("import-receipt", artifact, "--at", kTime);
  const made = { artifact: "stories.slm", manifest: "stories.minimodel", receipt: "stories.minimodel-receipt",
    adapter: "shift.adp1", ledger: "promotion.ledger", registry: "selector.registry" };
  return Object.fromEntries(Object.entries(made).map(([role, name]) => [role, join(folder, "models", name)]));
}
