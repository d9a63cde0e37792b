// SPDX-License-Identifier: Apache-2.0
// Tests how the page shows long names: they lose their middle, as the command cuts them, and are whole for screen readers.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { add, choose, give, pageTest, rowNames } from "./support/page.mjs";
import { floats, kSite, safetensors, scratch } from "./support/tools.mjs";

const one = { dtype: "F32", shape: [1], bytes: floats([1]) };
const kCuts = join(kSite, "js/name-cuts.js");
const withoutSite = existsSync(kCuts) ? false : "the page is not built: make web";

// The texts and what becomes of them are those of cli/cuts_test.cc.
test("names are cut as the command cuts them", { skip: withoutSite }, async () => {
  const { Cuts } = await import(pathToFileURL(kCuts).href);
  const cut = (texts, columns) => {
    const cuts = new Cuts(texts, columns);
    return texts.map((text) => cuts.of(text));
  };
  const layers = Array.from({ length: 12 }, (_, at) => ["query", "key", "value"].map((part) =>
    `encoder.layer.${at}.attention.self.${part}.weight`)).flat();
  for (const columns of [24, 30, 36]) {
    const found = cut(layers, columns);
    assert.equal(new Set(found).size, layers.length);
    for (const text of found) assert.ok(text.length <= columns, text);
  }
  assert.deepEqual(cut([layers[0], layers[3], "pooler"], 28), ["enco...0...self.query.weight", "enco...1...self.query.weight", "pooler"]);
  assert.deepEqual(cut(["a", "a much longer text than fits"], 16), ["a", "a much...an fits"]);
  assert.deepEqual(cut(["twice the same text, twice"], 16), ["twice ..., twice"]);
  const alike = ["a".repeat(60), `b${"a".repeat(58)}b`, `b${"a".repeat(30)}c${"a".repeat(27)}b`, `b${"a".repeat(5)}c${"a".repeat(52)}b`];
  assert.equal(new Set(cut(alike, 20)).size, 4);
});

/** What the cells of names show, and whether it has room. */
const cells = (page) => page.$$eval(".table-row .cell.name", (all) => all.map((cell) =>
  ({ text: cell.textContent, title: cell.title, fits: cell.scrollWidth <= cell.clientWidth })));

pageTest("tensors whose names differ look different at any width", {}, async (page) => {
  assert.doesNotMatch(await page.textContent("body"), /every byte/i);
  const names = Array.from({ length: 12 }, (_, at) => ["q_proj", "k_proj"].map((part) => `model.layers.${at}.self_attn.${part}.lora_A.default.weight`)).flat();
  const file = scratch(`${"a-long-name-of-a-model".repeat(4)}-00001-of-00002.safetensors`);
  writeFileSync(file, safetensors(Object.fromEntries(names.map((name) => [name, one]))));
  writeFileSync(scratch("other.safetensors"), safetensors({ w: one }));
  await give(page, scratch("other.safetensors"));
  await add(page, file);
  await choose(page, "tensors");
  for (const width of [1280, 700, 360]) {
    await page.setViewportSize({ width, height: 1400 });
    await rowNames(page);
    const shown = await cells(page);
    assert.equal(shown.length, names.length);
    assert.deepEqual(shown.map(({ title }) => title), names);
    assert.equal(new Set(shown.map(({ text }) => text)).size, names.length, JSON.stringify(shown.slice(0, 3)));
    for (const { text, fits, title } of shown) assert.ok(fits && text.slice(-6) === title.slice(-6), `${width}: ${text}`);
    const strip = await page.$$eval(".file-name", (all) => all.map((name) => name.textContent));
    assert.ok(strip.some((name) => name.endsWith("-00001-of-00002.safetensors")));
  }
  assert.ok((await cells(page)).some(({ text }) => text.includes("...")), "a narrow page cuts");
});

pageTest("a long name is whole as a tooltip and for screen readers", {}, async (page) => {
  const name = `model.layers.0.${"a_block_of_a_network.".repeat(8)}q_proj.weight`;
  const path = scratch(`${"a-long-name-of-a-model".repeat(4)}.safetensors`), other = scratch("vocab.txt");
  writeFileSync(path, safetensors({ [name]: one }));
  writeFileSync(other, "[PAD]\n");
  await give(page, path);
  await add(page, other);
  await choose(page, "tensors");
  await rowNames(page);
  const cell = page.getByRole("gridcell", { name, exact: true });
  assert.equal(await cell.getAttribute("title"), name);
  const file = path.split("/").pop();
  assert.match(await page.getByRole("button", { name: `${file} model`, exact: true }).getAttribute("title"), /^a-long-name.*\.safetensors, \d/);
  assert.equal(await page.getByRole("group", { name: "vocab.txt vocabulary", exact: true }).count(), 1);
});

pageTest("a name is divided between characters, and of an endless one both ends are kept", {}, async (page) => {
  const names = { faces: `a.name.of.faces.${"\u{1f600}".repeat(40)}`, marks: `marks.${"e\u0301".repeat(90)}`, blanks: `blanks${" ".repeat(12)}`,
    endless: `first${"x".repeat(100_000)}last.weight`, turned: `turned${"\u202e".repeat(30)}` };
  const path = scratch("characters.safetensors");
  writeFileSync(path, safetensors(Object.fromEntries(Object.values(names).map((name) => [name, one]))));
  await give(page, path);
  await choose(page, "tensors");
  const rows = await rowNames(page);
  for (const name of ["faces", "marks", "blanks"]) assert.ok(rows.includes(names[name]), name);
  const endless = rows.find((name) => name.startsWith("first"));
  assert.ok(endless.length <= 502 && endless.includes("x…x") && endless.endsWith("last.weight"));
  const shown = (await cells(page)).map(({ text }) => text);
  assert.ok(!shown.join("").includes("\u202e"));
  for (const start of ["a.name", "marks"]) {
    const [end] = shown.filter((text) => text.startsWith(start)).map((text) => text.split("...")[1] ?? "");
    assert.ok(end.length > 5, `${start} is cut`);
    assert.doesNotMatch(end, /^[\udc00-\udfff\p{M}\s]/u);
  }
  const said = await page.$$eval(".table-row .cell.name", (all) => all.map((cell) => cell.getAttribute("aria-label") + cell.title).join(""));
  assert.ok(!said.includes("\u202e"));
});
