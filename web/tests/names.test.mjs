// SPDX-License-Identifier: Apache-2.0
// Tests how the page shows long names: they lose their middle, never their end, and are whole for screen readers.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

import { add, choose, give, pageTest, rowNames } from "./support/page.mjs";
import { floats, safetensors, scratch } from "./support/tools.mjs";

const one = { dtype: "F32", shape: [1], bytes: floats([1]) };

/** Runs in the page: whether the end of each name is inside its place, and whether its start is cut. */
function shown(elements) {
  return elements.map((element) => {
    const [start, end] = [".name-start", ".name-end"].map((part) => element.querySelector(part));
    const place = element.getBoundingClientRect(), box = end?.getBoundingClientRect();
    return { text: element.textContent, line: element.innerText, cut: start !== null && start.scrollWidth > start.clientWidth, start: start?.clientWidth ?? 0,
      end: end?.textContent ?? "", inside: box !== undefined && box.left >= place.left - 1 && box.right <= place.right + 1 };
  });
}

pageTest("a long name keeps its end, which often says what it is", {}, async (page) => {
  assert.doesNotMatch(await page.textContent("body"), /every byte/i);
  const names = ["q_proj.weight", "q_proj.bias"].map((end) => `model.layers.0.${"a_block_of_a_network.".repeat(8)}${end}`);
  const files = ["-00001-of-00002.safetensors", "-00002-of-00002.safetensors"].map((end) => scratch(`${"a-long-name-of-a-model".repeat(4)}${end}`));
  writeFileSync(files[0], safetensors({ [names[0]]: one }));
  writeFileSync(files[1], safetensors({ [names[1]]: one, short: one }));
  await give(page, files[0]);
  await add(page, files[1]);
  await choose(page, "tensors");
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 860 });
    assert.deepEqual((await rowNames(page)).sort(), [names[1], "short"]);
    const [long] = (await page.$$eval(".table-row .cell.name", shown)).filter(({ text }) => text === names[1]);
    assert.ok(long.cut && long.inside && long.start > 20 && names[1].endsWith(long.end) && long.end.length >= 10 && !long.line.includes("\n"), JSON.stringify([width, long]));
    const strip = await page.$$eval(".file-name", shown);
    assert.equal(strip.length, 2);
    for (const name of strip) assert.ok(name.cut && name.inside && name.text.endsWith("safetensors"), JSON.stringify([width, name]));
  }
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
  const names = { faces: `a.name.of.faces.${"\u{1f600}".repeat(9)}`, marks: `marks.${"e\u0301".repeat(12)}`, blanks: `blanks${" ".repeat(12)}`,
    endless: `first${"x".repeat(100_000)}last.weight`, turned: `turned${"\u202e".repeat(30)}` };
  const path = scratch("characters.safetensors");
  writeFileSync(path, safetensors(Object.fromEntries(Object.values(names).map((name) => [name, one]))));
  await give(page, path);
  await choose(page, "tensors");
  const rows = await rowNames(page);
  for (const name of ["faces", "marks", "blanks"]) assert.ok(rows.includes(names[name]), name);
  const endless = rows.find((name) => name.startsWith("first"));
  assert.ok(endless.length <= 502 && endless.includes("x…x") && endless.endsWith("last.weight"));
  assert.ok(!rows.join("").includes("\u202e"));
  for (const { end } of await page.$$eval(".table-row .cell.name", shown)) assert.doesNotMatch(end, /^[\udc00-\udfff\p{M}\s]/u);
  const said = await page.$$eval(".table-row .cell.name", (cells) => cells.map((cell) => cell.getAttribute("aria-label") + cell.title).join(""));
  assert.ok(!said.includes("\u202e"));
});
