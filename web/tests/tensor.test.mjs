// SPDX-License-Identifier: Apache-2.0
// Tests the view of one tensor: its statistics, pictures and downloads match the command's output.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { choose, downloaded, facts, give, pageTest, plain, textOf, type } from "./support/page.mjs";
import { floats, kData, native, nativeInspection, noise, safetensors, scratch, withoutData, withoutNative } from "./support/tools.mjs";

const kOpen = ".tensor-side";

/** Opens a tensor by name from the table and waits for its statistics. */
async function open(page, name) {
  await page.fill('input[type="search"]', name);
  const places = await page.$$eval(".table-row .cell.name", (cells) => cells.map((cell) => cell.title));
  await page.locator(".table-row").nth(places.indexOf(name)).click();
  await page.waitForFunction((wanted) => document.querySelector(".tensor-name")?.textContent === wanted, name);
  await page.waitForSelector(`${kOpen} dl.tiles`);
}

/** The command's statistics in the page's number format. */
const spelled = (page, statistics) => page.evaluate(async ({ min, max, mean, zeros, nans, infinities }) => {
  const { real, grouped } = await import("./js/format-numbers.js");
  return { Minimum: real(min), Maximum: real(max), Mean: real(mean), Zeros: grouped(zeros), NaN: grouped(nans),
    Infinities: grouped(infinities) };
}, statistics);

const histogramOf = (page) => page.locator(`${kOpen} .histogram`).getAttribute("aria-label");
const colorsOf = (page) => page.locator(`${kOpen} canvas.heat`).evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const words = new Uint32Array(data.buffer);
  return { wide: canvas.width, high: canvas.height, colors: new Set(words).size, painted: words.filter((word) => word >>> 24 === 255).length };
});
const hexOf = (page) => page.$$eval(`${kOpen} .part .hex-row .hex-bytes span`, (cells) => cells.map((cell) => cell.textContent).join(""));

/** Everything about one tensor of a file. */
async function agree(page, path, name) {
  const label = `${path} ${name}`;
  await open(page, name);
  const inspection = nativeInspection(path, "--stats");
  const tensor = inspection.tensors.find((each) => each.name === name);
  const { stats } = tensor;
  const tiles = await page.$$eval(`${kOpen} dl.tiles > div`, (blocks) =>
    Object.fromEntries(blocks.map((block) => [block.firstChild.textContent, block.lastChild.textContent])));
  assert.deepEqual(tiles, await spelled(page, stats), label);
  const about = await facts(page, `${kOpen} dl.facts`);
  assert.equal(about.Dtype, tensor.dtype, label);
  const finite = stats.elements - stats.nans - stats.infinities;
  if (finite > 0) {
    const [, counted] = plain(await histogramOf(page)).match(/^Histogram of (\d+) elements? from/);
    assert.equal(Number(counted), finite, label);
  }
  if (stats.elements > 0) {
    await page.waitForSelector(`${kOpen} .legend canvas`);
    const { wide, high, colors, painted } = await colorsOf(page);
    assert.ok(painted > 0 && painted <= wide * high, label);
    if (stats.elements > 100 && stats.min !== stats.max) assert.ok(colors > 4, `${label}: ${colors} colors`);
  }
  const [part] = tensor.parts;
  if (part.length > 0) {
    const bytes = readFileSync(path).subarray(part.offset, part.offset + Math.min(256, part.length));
    assert.equal((await hexOf(page)).slice(0, bytes.length * 2), bytes.toString("hex"), label);
  }
  const { name: file, bytes } = await downloaded(page, `${kOpen} >> text=Download as .npy`);
  assert.match(file, /\.npy$/);
  const out = scratch("native.npy");
  native(["extract", path, name, "--dense", "-o", out, "--force", "--quiet"]);
  assert.ok(bytes.equals(readFileSync(out)), `${label}: the .npy is the command's`);
}

pageTest("figures, pixels, bytes and .npy are the command's", { skip: withoutData }, async (page) => {
  const slm = scratch("stories.slm");
  const packed = scratch("packed.zt");
  const q8 = scratch("stories-q8.slm");
  const bin = join(kData, "llama/stories260K.bin");
  const tokenizer = join(kData, "llama/tok512.bin");
  native(["convert", bin, slm, "--tokenizer", tokenizer, "--quiet"]);
  native(["convert", bin, q8, "--tokenizer", tokenizer, "--quantize", "q8_0", "--quiet"]);
  native(["convert", join(kData, "tiny_bert/model.safetensors"), packed, "--encoding", "zstd", "--digest", "sha256", "--quiet"]);
  const files = [join(kData, "tiny_bert/model.safetensors"), slm, q8, packed, join(kData, "safetensors/test.safetensors"),
    join(kData, "stb/reference-aligned.stb"), join(kData, "ztensor/zt11-wheel-1.1.1-dtypes.zt"),
    join(kData, "ztensor/zt01-wheel-0.1.0.zt")];
  let count = 0;
  for (const path of files) {
    await give(page, path);
    await choose(page, "tensors");
    const { tensors } = nativeInspection(path);
    const some = tensors.filter(({ supported, layout }) => supported && (layout === "dense" || path === q8));
    for (const { name } of [some[0], some.at(-1)]) {
      await agree(page, path, name);
      count += 1;
    }
    await choose(page, "overview");
  }
  assert.ok(count > 10);
});

pageTest("what is not finite is counted and colored apart", { skip: withoutNative }, async (page) => {
  const path = scratch("odd.safetensors");
  const values = Array.from({ length: 4096 }, (_, at) => (at % 64) - 32);
  values[0] = NaN;
  values[1] = Infinity;
  values[2] = -Infinity;
  writeFileSync(path, safetensors({ odd: { dtype: "F32", shape: [64, 64], bytes: floats(values) },
    nothing: { dtype: "F32", shape: [0, 4], bytes: floats([]) }, one: { dtype: "F32", shape: [], bytes: floats([7]) },
    cube: { dtype: "F32", shape: [3, 200, 150], bytes: noise(3 * 200 * 150 * 4).map((byte, at) => (at % 4 === 3 ? 0x3f : byte)) } }));
  await give(page, path);
  await choose(page, "tensors");
  for (const name of ["odd", "one", "cube", "nothing"]) await agree(page, path, name);
  await open(page, "odd");
  await page.waitForSelector(`${kOpen} .legend canvas`);
  const broken = await page.locator(`${kOpen} canvas.heat`).evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, 4, 1);
    return [0, 1, 2, 3].map((at) => data[at * 4] === 214 && data[at * 4 + 1] === 0);
  });
  assert.deepEqual(broken, [true, true, true, false]);
});

pageTest("a slice of a cube is the slice", { skip: withoutNative }, async (page) => {
  const path = scratch("cube.safetensors");
  const values = Array.from({ length: 3 * 200 * 150 }, (_, at) => at);
  writeFileSync(path, safetensors({ cube: { dtype: "F32", shape: [3, 200, 150], bytes: floats(values) } }));
  await give(page, path);
  await choose(page, "tensors");
  await open(page, "cube");
  await page.waitForSelector(`${kOpen} .legend canvas`);
  const fields = page.locator(`${kOpen} .index-input`);
  for (const [at, value] of ["2", "100", "140"].entries()) {
    await type(fields.nth(at), value);
    await fields.nth(at).press("Enter");
  }
  await page.waitForFunction(() => document.querySelector(".tensor-side canvas.heat").getAttribute("aria-label")
    .startsWith("Heat map: rows 100 to 199, columns 140 to 149"));
  assert.equal(await textOf(page, `${kOpen} wb-heat-map .readout`), `[2, 100, 140] = ${(2 * 200 + 100) * 150 + 140}`);
  await page.focus(`${kOpen} canvas.heat`);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.equal(await textOf(page, `${kOpen} wb-heat-map .readout`), `[2, 101, 141] = ${(2 * 200 + 101) * 150 + 141}`);
});

pageTest("hex pages go through the whole file", { skip: withoutNative }, async (page) => {
  const path = scratch("pages.safetensors");
  writeFileSync(path, safetensors({ w: { dtype: "U8", shape: [5000], bytes: noise(5000) } }));
  const content = readFileSync(path);
  await give(page, path);
  await choose(page, "bytes");
  const shown = () => page.$$eval(".hex-row .hex-bytes span", (cells) => cells.map((cell) => cell.textContent).join(""));
  await page.waitForSelector(".hex-row");
  assert.equal(await shown(), content.subarray(0, 256).toString("hex"));
  await page.click('[data-move="On"]');
  await page.waitForFunction(() => document.querySelector(".hex-offset").textContent === "0100");
  assert.equal(await shown(), content.subarray(256, 512).toString("hex"));
  await page.click('[data-move="Last"]');
  await page.waitForFunction(() => document.querySelector('[data-move="Last"]').disabled);
  assert.equal((await shown()).slice(-32), content.subarray(-16).toString("hex"));
  await type(page.locator(".offset-input"), "0x3f2");
  await page.press(".offset-input", "Enter");
  await page.waitForFunction(() => document.querySelector(".hex-offset").textContent === "03f0");
  assert.equal(await shown(), content.subarray(0x3f0, 0x4f0).toString("hex"));
});
