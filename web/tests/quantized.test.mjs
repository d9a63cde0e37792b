// SPDX-License-Identifier: Apache-2.0
// Tests quantized weights on the page: their numbers are what it lists, measures, compares and converts, and what the
// files store is a switch away.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { add, choose, downloaded, facts, give, pageTest, plain, rowNames, textOf, verdict } from "./support/page.mjs";
import { kBrowser, kData, native, nativeInspection, quantized, scratch, withoutData, withoutNative } from "./support/tools.mjs";

const kSwitch = 'wb-tensors-panel input[name="stored"]';
const kOpen = ".tensor-side";

function file(name, kind) {
  const path = scratch(name);
  writeFileSync(path, quantized(kind));
  return path;
}

const cells = (page, name) => page.$$eval(".table-row", (rows, wanted) =>
  rows.map((row) => [...row.querySelectorAll(".cell")].map((cell) => cell.getAttribute("aria-label") ?? cell.textContent)).find(([first]) => first === wanted), name);

pageTest("quantized weights are listed as people see them, and as the file stores them", { skip: withoutNative }, async (page) => {
  const path = file("fp8.safetensors");
  await give(page, path);
  assert.equal(await verdict(page), "valid");
  const about = await facts(page, "wb-overview dl.facts:not(.soundness)");
  assert.deepEqual([about.Tensors, about.Quantized], ["2", "1 weight of 2 stored tensors"]);
  assert.equal(about.Dtypes, "fp8 per tensor × 1, f32 × 1");
  await choose(page, "tensors");
  assert.deepEqual(await rowNames(page), nativeInspection(path).tensors.map(({ name }) => name));
  assert.deepEqual((await cells(page, "mlp.weight")).slice(0, 5).map(plain), ["mlp.weight", "fp8 per tensor", "[2, 2]", "8 B", "of 2 tensors"]);
  // By keys: the switch is a checkbox with a label.
  await page.getByLabel("Show the stored tensors").focus();
  await page.keyboard.press("Space");
  assert.deepEqual(await rowNames(page), nativeInspection(path, "--stored").tensors.map(({ name }) => name));
  await page.locator(".table-row", { hasText: "mlp.weight_scale" }).click();
  await page.waitForSelector(`${kOpen} dl.tiles`);
  await page.locator(".table-row").nth(nativeInspection(path, "--stored").tensors.findIndex(({ name }) => name === "mlp.weight")).click();
  assert.match(await textOf(page, `${kOpen} .warning-text`), /^These are codes of FP8 with scales/);
  await page.uncheck(kSwitch);
  assert.equal(await page.locator(kOpen).isVisible(), false);
  assert.deepEqual(await rowNames(page), nativeInspection(path).tensors.map(({ name }) => name));
});

pageTest("figures, values and .npy of a quantized weight are its numbers", { skip: withoutNative }, async (page) => {
  const path = file("figures.safetensors");
  await give(page, path);
  await choose(page, "tensors");
  await page.locator(".table-row", { hasText: "mlp.weight" }).click();
  await page.waitForSelector(`${kOpen} .legend canvas`);
  const tiles = await facts(page, `${kOpen} dl.tiles`);
  assert.deepEqual([tiles.Minimum, tiles.Maximum, tiles.Mean, tiles.Zeros], ["-0.5", "1", "0.3125", "0"]);
  const about = await facts(page, `${kOpen} dl.facts`);
  assert.deepEqual([about.Dtype, about.Elements, about["Stored as"]], ["f32", "4", "fp8 per tensor, of 2 tensors"]);
  assert.equal(await textOf(page, `${kOpen} wb-heat-map .readout`), "[0, 0] = 0.5");
  const parts = await page.$$eval(`${kOpen} .part`, (all) => all.map((part) => part.querySelector("dd").textContent));
  assert.deepEqual(parts, ["mlp.weight", "mlp.weight_scale"]);
  await page.waitForSelector(`${kOpen} .part .hex-row`);
  assert.equal(await page.$eval(`${kOpen} .part .hex-bytes`, (line) => [...line.children].map((cell) => cell.textContent).join("")), "384030b8");
  const { bytes } = await downloaded(page, `${kOpen} >> text=Download as .npy`);
  const out = scratch("native.npy");
  native(["extract", path, "mlp.weight", "--dense", "-o", out, "--quiet"]);
  assert.ok(bytes.equals(readFileSync(out)));
});

pageTest("quantized tensors become dense as their library decodes them", { skip: withoutNative }, async (page) => {
  const path = file("to-dense.safetensors");
  await give(page, path);
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  await page.selectOption("[name=format]", "npz");
  await page.selectOption("[name=dequantize]", "auto");
  await page.waitForFunction(() => /dense f32/.test(document.querySelector("wb-convert-panel").textContent));
  await page.click("wb-convert-panel .row .button.primary");
  const { bytes } = await downloaded(page, "wb-convert-panel >> text=Download >> nth=0");
  const out = scratch("dense.npz");
  native(["convert", path, out, "--dequantize", "--quiet"]);
  assert.ok(bytes.equals(readFileSync(out)));
  // Ordinary models have nothing to dequantize.
  await give(page, out);
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  assert.equal(await page.locator("[name=dequantize]").count(), 0);
  await choose(page, "tensors");
  assert.equal(await page.locator("wb-tensors-panel :is(input[type=checkbox], details)").count(), 0);
});

pageTest("quantized models are compared by their numbers", { skip: withoutNative }, async (page) => {
  const [a, b] = [file("a.safetensors"), file("b.safetensors", { codes: [0x38, 0x40, 0x30, 0x38] })];
  await give(page, a);
  await choose(page, "compare");
  await add(page, b);
  await page.waitForSelector('[data-compared="different"]');
  await page.click("wb-compare-panel .table-row");
  await page.waitForSelector("wb-difference-map .legend canvas");
  const values = await facts(page, "wb-difference-view dl.tiles");
  assert.deepEqual([values.Changed, values["Max abs"]], ["1 of 4", "1"]);
});

pageTest("a question that the files leave open is shown, and answered", { skip: withoutNative }, async (page) => {
  const path = file("blocks.safetensors", { blocks: true });
  await give(page, path);
  await choose(page, "tensors");
  await page.waitForSelector("wb-tensors-panel .changes li");
  assert.match(await textOf(page, "wb-tensors-panel .changes"), /mlp\.weight.*FP8 with scales → nothing states the size of its blocks/);
  assert.equal(await page.locator(kSwitch).count(), 0, "there are no numbers yet");
  const field = page.getByLabel("Scheme");
  await field.fill("fp8:size=2x2");
  await field.press("Enter");
  await page.waitForSelector("wb-tensors-panel .failure");
  assert.match(await textOf(page, "wb-tensors-panel .failure"), /it takes block=RxC/);
  assert.deepEqual((await rowNames(page)).length, 3, "the model is still there");
  await field.fill("fp8:block=2x2");
  await page.evaluate(() => { document.querySelector("wb-app").dataset.state = "asked"; });
  await field.press("Enter");
  await page.waitForSelector('wb-app[data-state="open"]');
  assert.equal(await page.getByLabel("Scheme").inputValue(), "fp8:block=2x2");
  assert.deepEqual(await rowNames(page), nativeInspection(path, "--scheme", "fp8:block=2x2").tensors.map(({ name }) => name));
});

const kCase = join(kData, "quantized/gptq_v1_b4_g32_asym");
const withoutCase = withoutData || (existsSync(kCase) ? false : `there is no file of a quantizing library: ${kCase}`) ||
  (kBrowser === "firefox" && "WebDriver BiDi cannot choose a folder in Firefox 153");

pageTest("a folder of GPTQ shows the command's statistics", { skip: withoutCase }, async (page) => {
  await page.click(".brand");
  const chosen = page.waitForEvent("filechooser");
  await page.click("text=Choose a folder");
  await (await chosen).setFiles(kCase);
  await page.waitForSelector('wb-app[data-state="open"]');
  await choose(page, "tensors");
  const { tensors } = nativeInspection(kCase, "--stats");
  const weight = tensors.find(({ stored }) => stored);
  const [, dtype, , , layout] = await cells(page, weight.name);
  assert.deepEqual([dtype, layout], [weight.stored.name, `of ${weight.stored.tensors.length} tensors`]);
  await page.locator(".table-row", { hasText: weight.name }).click();
  await page.waitForSelector(`${kOpen} dl.tiles`);
  const spelled = await page.evaluate(async (value) => (await import("./js/format-numbers.js")).real(value), weight.stats.mean);
  assert.equal((await facts(page, `${kOpen} dl.tiles`)).Mean, spelled);
});
