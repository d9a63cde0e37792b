// SPDX-License-Identifier: Apache-2.0
// Tests the comparison of two models: the table has the command's numbers, the map is that of the elements, and all of it
// goes by keys.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

import { add, choose, give, pageTest, plain, rowNames, textOf, type } from "./support/page.mjs";
import { floats, native, nativeJson, noise, safetensors, scratch, withoutNative } from "./support/tools.mjs";

const kSide = "wb-compare-panel .tensor-side";

/** Two files that differ in every way the page names. */
function pair() {
  const [a, b] = [scratch("a.safetensors"), scratch("b.safetensors")];
  const values = Array.from({ length: 200 * 300 }, (_, at) => Math.sin(at));
  const changed = values.map((value, at) => (at === 3 * 300 + 7 ? value + 2 : at % 1000 === 999 ? value + 1e-3 : value));
  const broken = [1, 2, 3, 4];
  const f32 = (shape, numbers) => ({ dtype: "F32", shape, bytes: floats(numbers) });
  const only = (name, length) => ({ [name]: f32([length], Array.from({ length }, (_, at) => at * 0.5 + length)) });
  writeFileSync(a, safetensors({ same: f32([4], [1, 2, 3, 4]), changed: f32([200, 300], values),
    reshaped: f32([2, 6], values.slice(0, 12)), odd: f32([2, 2], broken), "old.name": f32([5, 3], values.slice(100, 115)),
    recast: f32([3], [1, 2, 3]), ...only("alone.a", 9) }, { license: "MIT", step: "1" }));
  writeFileSync(b, safetensors({ changed: f32([200, 300], changed), same: f32([4], [1, 2, 3, 4]),
    reshaped: f32([3, 4], values.slice(0, 12)), odd: f32([2, 2], [1, NaN, 3, 4]), "new.name": f32([5, 3], values.slice(100, 115)),
    recast: { dtype: "BF16", shape: [3], bytes: Buffer.from([0x80, 0x3f, 0, 0x40, 0x40, 0x40]) }, ...only("alone.b", 11) },
    { license: "MIT", step: "2", more: "x" }));
  return [a, b];
}

async function compare(page, a, b) {
  await give(page, a);
  await choose(page, "compare");
  await page.waitForSelector("wb-compare-panel .drop");
  await add(page, b);
  await page.waitForSelector("[data-compared]");
}

pageTest("a second file is compared with the first, with the command's numbers", { skip: withoutNative }, async (page) => {
  const [a, b] = pair();
  await compare(page, a, b);
  assert.equal(await textOf(page, "h1"), "a.safetensors", "the first file stays the current one");
  const expected = nativeJson(["diff", a, b], { statuses: [1] });
  assert.deepEqual(await rowNames(page), expected.tensors.map(({ a: from, b: to }) =>
    (from && to && from.name !== to.name ? `${from.name} → ${to.name}` : (from ?? to).name)));
  const kinds = await page.$$eval("wb-difference-table .cell.kind:not([role=columnheader])", (cells) =>
    cells.map((cell) => cell.textContent));
  for (const [at, { verdict, changes }] of expected.tensors.entries()) {
    const alone = { "only-a": "only in A", "only-b": "only in B" }[verdict];
    for (const word of alone ? [alone] : changes) assert.ok(kinds[at].includes(word), `${kinds[at]} has ${word}`);
  }
  const summary = await textOf(page, "[data-compared]");
  for (const words of ["1 renamed", "1 reshaped", "1 recast", "2 changed", "1 only in A", "1 only in B", "1 equal",
    "2 entries of metadata", "moved"]) assert.ok(summary.includes(words), `${summary}: ${words}`);
  const metadata = await page.$$eval("wb-compare-panel table.entries tbody tr", (rows) =>
    rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(metadata, [["step", "1", "2"], ["more", "only in B", "x"]]);

  await page.fill('wb-compare-panel input[type="search"]', "changed");
  await page.click('wb-compare-panel .table-row[data-place="0"]');
  await page.waitForSelector(`${kSide} canvas.heat`);
  const tiles = await page.$$eval(`${kSide} dl.tiles > div`, (blocks) => Object.fromEntries(blocks.map((block) =>
    [block.firstChild.textContent, block.lastChild.textContent.replace(/(\d),(?=\d{3})/g, "$1").replaceAll("\u00a0", " ")])));
  const { values } = expected.tensors.find(({ a: from }) => from?.name === "changed");
  const spelled = (value) => page.evaluate(async (number) => (await import("./js/format-numbers.js")).real(number), value);
  assert.equal(tiles["Changed"], `${values.changed} of ${values.elements}`);
  assert.equal(tiles["Max abs"], await spelled(values.max_abs));
  assert.equal(tiles["Max relative"], await spelled(values.max_relative));
  assert.equal(tiles["RMS"], await spelled(values.rms));
  assert.equal(tiles["SNR"], `${values.snr.toFixed(1)} dB`);
  assert.equal(tiles["First at"], `[${Math.floor(values.first / 300)}, ${values.first % 300}]`);
  assert.equal(tiles["Largest at"], "[3, 7]");
});

pageTest("the map shows where: the strongest block holds the largest difference", { skip: withoutNative }, async (page) => {
  const [a, b] = pair();
  await compare(page, a, b);
  await page.fill('wb-compare-panel input[type="search"]', "changed");
  await page.click('wb-compare-panel .table-row[data-place="0"]');
  const label = await page.locator(`${kSide} canvas.heat`).getAttribute("aria-label");
  assert.match(label, /the largest difference, 2, is in rows 3, columns 7 to 8/);
  const drawn = await page.locator(`${kSide} canvas.heat`).evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const strong = [];
    for (let at = 0; at < data.length; at += 4) if (data[at] === 178 && data[at + 1] === 54) strong.push(at / 4);
    return { wide: canvas.width, high: canvas.height, strong };
  });
  assert.deepEqual([drawn.wide, drawn.high], [128, 128]);
  assert.deepEqual(drawn.strong, [2 * 128 + 3], "block (2, 3) of 128 x 128 holds row 3 and column 7");
  await page.focus(`${kSide} canvas.heat`);
  assert.match(await textOf(page, `${kSide} wb-difference-map .readout`), /^Rows 3, columns 7 to 8: largest \|B − A\| 2, 1 of 2 changed$/);
  await page.keyboard.press("ArrowRight");
  assert.match(await textOf(page, `${kSide} wb-difference-map .readout`), /columns 9 to 10: largest \|B − A\| 0, 0 of/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(kSide).isVisible(), false);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.place), "0");
  await page.fill('wb-compare-panel input[type="search"]', "odd");
  await page.focus('wb-compare-panel .table-row[tabindex="0"]');
  await page.keyboard.press("Enter");
  await page.waitForSelector(`${kSide} .swatch`);
  assert.match(await textOf(page, `${kSide} .legend`), /NaN or infinite in one only: 1/);
});

pageTest("differences are filtered and sorted", { skip: withoutNative }, async (page) => {
  const [a, b] = pair();
  await compare(page, a, b);
  await page.selectOption("wb-compare-panel .table-tools select", "renamed");
  assert.deepEqual(await rowNames(page), ["old.name → new.name"]);
  await page.selectOption("wb-compare-panel .table-tools select", "");
  await page.click('wb-difference-table [data-key="name"]');
  const names = await rowNames(page);
  assert.deepEqual(names, [...names].sort());
  await page.click('wb-difference-table [data-key="max"]');
  await page.click('wb-difference-table [data-key="max"]');
  assert.equal(await page.getAttribute("wb-difference-table .cell.max[role=columnheader]", "aria-sort"), "descending");
  const worst = await page.$$eval("wb-difference-table .table-row .cell.max", (cells) => cells.map((cell) => cell.textContent));
  assert.ok(worst.filter((text) => text !== "–").map(Number).every((value, at, all) => at === 0 || all[at - 1] >= value));
});

pageTest("equal files in two formats are equal; a tolerance is applied", { skip: withoutNative }, async (page) => {
  const [a, b] = pair();
  const packed = scratch("packed.zt");
  native(["convert", a, packed, "--encoding", "zstd", "--quiet"]);
  await compare(page, a, packed);
  assert.equal(await page.getAttribute("[data-compared]", "data-compared"), "equal");
  await add(page, b);
  await page.waitForSelector('[data-compared="different"]');
  await type(page.locator("[name=atol]"), "0.01");
  await page.click("wb-compare-panel >> text=Compare >> nth=0");
  await page.waitForFunction(() => document.querySelector("[data-compared]"));
  const expected = nativeJson(["diff", a, b, "--atol", "0.01"], { statuses: [1] });
  assert.ok(plain(await page.locator("[data-compared]").innerText()).includes(`${expected.compared} tensors compared`));
  await page.fill('wb-compare-panel input[type="search"]', "recast");
  assert.equal((await rowNames(page)).length, expected.tensors.filter(({ a: from }) => from?.name === "recast").length);
});

pageTest("a broken second file says what is wrong with it", {}, async (page) => {
  const [whole, broken] = [scratch("whole.safetensors"), scratch("broken.safetensors")];
  const bytes = safetensors({ w: { dtype: "U8", shape: [64], bytes: noise(64) } });
  writeFileSync(whole, bytes);
  writeFileSync(broken, bytes.subarray(0, -3));
  await give(page, whole);
  await choose(page, "compare");
  await add(page, broken);
  await page.waitForSelector("wb-compare-panel .failure");
  assert.equal(await textOf(page, "h1"), "whole.safetensors");
  assert.match(await page.getAttribute("wb-compare-panel li.finding", "data-rule"), /^safetensors\//);
});
