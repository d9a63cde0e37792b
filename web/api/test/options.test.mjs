// SPDX-License-Identifier: Apache-2.0
// The options of the package have the names of the library's table of options, and reach the core by them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { coreOptions } from "../dist/core_options.js";

const text = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
const sections = new Map(text("../../../docs/options.md").split("\n## ").slice(1).map((section) =>
  [section.slice(0, section.indexOf("\n")), [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map((row) => row[1])]));
const table = (...titles) => titles.flatMap((title) => sections.get(title) ?? assert.fail(title));

test("options have the names of the table", () => {
  const source = text("../src/options.ts");
  const kinds = {
    OpenOptions: ["Opening"],
    VerifyOptions: ["Opening"],
    PlanOptions: ["Conversions", "Views: what is converted"],
    DiffOptions: ["Comparing"],
    EditOptions: ["Edits"],
    EmbedderOptions: ["Vectors of texts"],
    GeneratorOptions: ["Language models"],
    GenerateOptions: ["Generated text"],
  };
  for (const [kind, titles] of Object.entries(kinds)) {
    const body = source.match(new RegExp(`export interface ${kind} [^{]*\\{(.*?)\\n\\}`, "s"))[1];
    const given = [...body.matchAll(/^ {2}readonly (\w+)\?: /gm)].map((member) => [member[1], "x"]);
    assert.ok(given.length > 1, kind);
    const known = new Set(table(...titles));
    for (const name of Object.keys(coreOptions(Object.fromEntries(given)))) assert.ok(known.has(name), `${kind}: ${name}`);
  }
});

test("options reach the core as texts, numbers, lists and pairs", () => {
  const set = JSON.parse('{"__proto__":"a","k":"v"}');
  const given = { keepGqa: true, maxLength: 3, cast: undefined, only: ["a", "b"], set, signal: new AbortController().signal,
    onProgress() {}, name: "x", beside: [], prompt: "" };
  assert.deepEqual(coreOptions(given),
    { "keep-gqa": true, "max-length": 3, "only": ["a", "b"], "set": ["__proto__", "a", "k", "v"], "prompt": "" });
});
