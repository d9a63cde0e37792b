// SPDX-License-Identifier: Apache-2.0
// Tests that the overview leads with what `weighbridge inspect` says: facts, sizes by dtype and by layer; and that the bar of
// the file names tensors, by pointer and by keys, in the colors of its legend.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { facts, give, pageTest, paint, plain } from "./support/page.mjs";
import { floats, kData, kRoot, native, nativeInspection, safetensors, scratch, withoutData, withoutNative } from "./support/tools.mjs";

const kSample = join(kRoot, "examples/sample.safetensors");

const legend = (page) => page.$$eval("wb-byte-map .legend li", (all) => all.map((each) => each.textContent.trim()));
const readout = (page) => page.$eval("wb-byte-map .readout", (line) => line.textContent.replaceAll("\u00a0", " "));
const layers = (page) => page.$$eval(".layers tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.replaceAll("\u00a0", " "))));

pageTest("the overview says first what the command says first", { skip: withoutData }, async (page) => {
  const path = scratch("stories.slm");
  native(["convert", join(kData, "llama/stories260K.bin"), path, "--tokenizer", join(kData, "llama/tok512.bin"), "--quantize", "q8_0",
    "--quiet"]);
  const licensed = scratch("licensed.safetensors");
  writeFileSync(licensed, safetensors({ w: { dtype: "F32", shape: [1536], bytes: floats(Array(1536).fill(0)) } }, { license: "apache-2.0" }));
  for (const file of [path, licensed]) {
    await give(page, file);
    const said = await facts(page, ".lead-facts dl");
    const { architecture, dtype, quantization, context_length: context, vocabulary, license } = nativeInspection(file);
    const expected = { Architecture: architecture, ...(quantization ? { Quantization: quantization } : { Dtype: dtype }),
      Context: context && `${context} tokens`, Vocabulary: vocabulary && `${vocabulary} tokens`, License: license };
    const { Parameters, ...others } = said;
    assert.deepEqual(others, Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== null)));
    assert.match(native(["inspect", file]), new RegExp(`(^|, )${plain(Parameters)} parameters`, "m"));
  }
  assert.equal(await page.$eval(".file-head .number", (size) => size.textContent.replaceAll("\u00a0", " ")),
    /tensors?, ([^,]*) \(/.exec(native(["inspect", licensed]))[1], "6.1 KiB");
});

pageTest("sizes by dtype and by layer are the command's", { skip: withoutNative }, async (page) => {
  await give(page, kSample);
  const shares = /by size: (.*)/.exec(native(["inspect", kSample]))[1].split(", ");
  assert.deepEqual(await legend(page), [...shares, "header and gaps"]);
  const tree = native(["inspect", "--tree", kSample]).split("\n").map((line) => line.trim().split(/\s{2,}/));
  const rows = await layers(page);
  const row = rows.find(([name]) => name === "encoder.layer.{0..1}");
  assert.equal(row[2], tree.find(([label]) => label.startsWith("encoder.layer.{0..1}"))[2]);
  assert.match(row[1], /^2 × /);
  assert.deepEqual(rows.map(([name]) => name).sort(), ["embeddings", "embeddings.LayerNorm", "embeddings.word_embeddings", "encoder.layer.{0..1}"]);
});

pageTest("the bar of the file names the tensor at the pointer, and by keys, and colors it by dtype", { skip: withoutNative }, async (page) => {
  await give(page, kSample);
  const { tensors, file_size: size } = nativeInspection(kSample);
  const big = ["f32", "bf16"].map((dtype) => tensors.filter((tensor) => tensor.dtype === dtype)
    .reduce((most, tensor) => (tensor.parts[0].length > most.parts[0].length ? tensor : most)));
  const pixel = (part) => page.$eval("canvas.byte-map", (canvas, at) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    return [...copy.getImageData(Math.round(canvas.width * at), 12, 1, 1).data].slice(0, 3).join(", ");
  }, part);
  const swatch = (dtype) => page.$$eval("wb-byte-map .legend li", (all, wanted) =>
    getComputedStyle(all.find((each) => each.textContent.trim().startsWith(wanted)).firstElementChild).backgroundColor.replace(/[^\d, ]/g, ""), dtype);
  const box = await page.locator("canvas.byte-map").boundingBox();
  for (const theme of ["light", "dark"]) {
    await paint(page, theme);
    const seen = new Set();
    for (const { name, dtype, shape, parts: [{ offset, length }] } of big) {
      const middle = (offset + length / 2) / size;
      await page.mouse.move(box.x + box.width * middle, box.y + 10);
      assert.equal(plain(await readout(page)), `${offset}: ${name}, ${dtype}, [${shape.join(", ")}], ${length / 1024}${length % 1024 ? "" : ".0"} KiB`);
      assert.equal(await pixel(middle), await swatch(dtype), `${theme}: ${dtype}`);
      seen.add(await swatch(dtype));
    }
    assert.equal(seen.size, big.length);
  }
  await page.mouse.move(box.x + 2, box.y + 10);
  assert.match(await readout(page), /header, or a gap$/);
  await page.mouse.move(0, 0);
  const inFile = [...tensors].sort((a, b) => a.parts[0].offset - b.parts[0].offset).map(({ name }) => name);
  await page.focus("canvas.byte-map");
  for (const [key, name] of [["ArrowRight", inFile[0]], ["ArrowRight", inFile[1]], ["End", inFile.at(-1)], ["ArrowLeft", inFile.at(-2)], ["Home", inFile[0]]]) {
    await page.keyboard.press(key);
    assert.ok((await readout(page)).includes(`: ${name}, `), `${key}: ${await readout(page)}`);
  }
});

pageTest("the files of an index have one bar", { skip: withoutData }, async (page) => {
  const files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"].map((name) => scratch(name));
  const one = (name) => safetensors({ [name]: { dtype: "F32", shape: [256], bytes: floats(Array(256).fill(1)) } });
  writeFileSync(files[0], one("first.weight"));
  writeFileSync(files[1], one("second.weight"));
  const index = scratch("model.safetensors.index.json");
  writeFileSync(index, JSON.stringify({ metadata: { total_size: 2048 }, weight_map: { "first.weight": "model-00001-of-00002.safetensors", "second.weight": "model-00002-of-00002.safetensors" } }));
  await give(page, index, ...files);
  await page.focus("canvas.byte-map");
  await page.keyboard.press("End");
  const end = nativeInspection(index).sources.reduce((sum, { size }) => sum + size, 0);
  assert.equal(plain(await page.$eval("wb-byte-map .axis", (axis) => axis.lastElementChild.textContent)), String(end));
  assert.equal(plain(await readout(page)), `${end - 1024}: second.weight, f32, [256], 1.0 KiB`);
});
