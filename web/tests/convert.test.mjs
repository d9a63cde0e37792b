// SPDX-License-Identifier: Apache-2.0
// Tests conversions: losses are shown before anything is written and must be allowed; the bytes equal the command's;
// checks and conversions can be cancelled, and the page works afterwards.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { choose, downloaded, give, pageTest, textOf, verdict } from "./support/page.mjs";
import { floats, kData, native, nativeJson, noise, safetensors, scratch, withoutData, withoutNative } from "./support/tools.mjs";

const kConvert = "wb-convert-panel .card .button.primary";

/** Chooses a target and waits for its plan. */
async function target(page, format, ending = format) {
  await page.selectOption("[name=format]", format);
  await page.waitForFunction((end) => document.querySelector("wb-convert-panel .card code")?.textContent.endsWith(end), `.${ending}`);
}

async function convert(page) {
  await page.click(kConvert);
  await page.waitForSelector("text=Written, read back and compared.");
  return downloaded(page, "wb-convert-panel >> text=Download >> nth=0");
}

pageTest("losses are listed, and Convert waits until they are allowed", { skip: withoutData }, async (page) => {
  const [path, tokenizer] = ["stories260K.bin", "tok512.bin"].map((name) => join(kData, "llama", name));
  await give(page, path, tokenizer);
  await verdict(page);
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  await target(page, "safetensors");
  const out = scratch("stories260K.safetensors");
  const args = ["convert", path, out, "--tokenizer", tokenizer];
  const { losses } = nativeJson([...args, "--dry-run"], { statuses: [0, 1] });
  const kinds = [...new Set(losses.map(({ kind }) => kind))];
  assert.ok(kinds.length > 1);
  assert.deepEqual(await page.$$eval('[data-plan="losses"]', (parts) => parts.map((part) => part.dataset.kind)), kinds);
  const listed = await textOf(page, `[data-plan="losses"][data-kind="${kinds[0]}"] .changes`);
  assert.ok(listed.includes(losses[0].subject), losses[0].subject);
  assert.equal(await page.isDisabled(kConvert), true);
  for (const [at, kind] of kinds.entries()) {
    await page.check(`#allow-${kind}`);
    await page.waitForFunction((wanted) => document.querySelectorAll('[data-plan="losses"] input:checked').length === wanted, at + 1);
    if (at + 1 < kinds.length) assert.equal(await page.isDisabled(kConvert), true, "every kind has to be agreed to");
  }
  await page.waitForFunction((button) => !document.querySelector(button).disabled, kConvert);  // the plan is recomputed first
  const { name, bytes } = await convert(page);
  assert.equal(name, "stories260K.safetensors");
  native([...args, "--allow", kinds.join(","), "--quiet"]);
  assert.ok(bytes.equals(readFileSync(out)));
  await page.uncheck(`#allow-${kinds[0]}`);
  await page.waitForFunction((button) => document.querySelector(button).disabled, kConvert);
});

pageTest("options reach the file", { skip: withoutData }, async (page) => {
  const path = join(kData, "tiny_bert/model.safetensors");
  await give(page, path);
  await verdict(page);
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  await target(page, "zt");
  await page.selectOption("[name=encoding]", "zstd");
  await page.selectOption("[name=digest]", "sha256");
  await page.selectOption("[name=cast]", "f16");
  await page.waitForFunction(() => /precision/.test(document.querySelector("wb-convert-panel").textContent));
  const box = page.locator("#allow-precision");
  if (await box.count() > 0 && !(await box.isChecked())) await box.check();
  await page.waitForFunction((button) => !document.querySelector(button).disabled, kConvert);
  const { bytes } = await convert(page);
  const out = scratch("model.zt");
  native(["convert", path, out, "--encoding", "zstd", "--digest", "sha256", "--cast", "f16", "--quiet"]);
  assert.ok(bytes.equals(readFileSync(out)));
  const written = scratch("written.zt");
  writeFileSync(written, bytes);
  await give(page, written);
  assert.equal(await verdict(page), "valid");
});

pageTest("a target that cannot hold the model says so", { skip: withoutNative }, async (page) => {
  const path = scratch("complex.safetensors");
  writeFileSync(path, safetensors({ w: { dtype: "F32", shape: [2, 2], bytes: floats([1, 2, 3, 4]) } }));
  await give(page, path);
  await verdict(page);
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  await page.selectOption("[name=format]", "slm");
  await page.waitForSelector('[data-plan="blockers"], wb-convert-panel .failure');
  assert.equal(await page.locator(`${kConvert}:enabled`).count(), 0);
});

/** A file that takes a second or more to check and to pack. */
function large() {
  const plain = scratch("large.safetensors");
  const packed = scratch("large.zt");
  const bytes = noise(192 * 2 ** 20);
  writeFileSync(plain, safetensors({ w: { dtype: "U8", shape: [bytes.length], bytes } }));
  native(["convert", plain, packed, "--digest", "sha256", "--quiet"]);
  return packed;
}

pageTest("a check and a conversion can be cancelled, and the page goes on", { skip: withoutNative }, async (page) => {
  const path = large();
  await give(page, path);
  await page.click("wb-overview wb-job button");
  await page.waitForSelector('[data-verdict="open"]');
  assert.match(await textOf(page, ".verdict"), /cancelled/);
  await page.click(".verdict .button.primary");
  const bar = await page.waitForSelector("wb-overview wb-job progress");
  await page.waitForFunction((progress) => progress.value > 0 || !progress.isConnected, bar);
  assert.equal(await verdict(page), "valid");

  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  await target(page, "zt");
  await page.selectOption("[name=encoding]", "zstd");
  await page.waitForFunction((button) => !document.querySelector(button).disabled, kConvert);
  await page.click(kConvert);
  await page.click("wb-convert-panel wb-job button");
  await page.waitForSelector("text=Cancelled; nothing was kept.");
  assert.equal(await page.locator("wb-job progress").count(), 0);

  await choose(page, "tensors");
  await page.locator(".table-row").first().click();
  await page.waitForSelector(".tensor-side .part .hex-row");
  const small = scratch("small.safetensors");
  writeFileSync(small, safetensors({ w: { dtype: "F32", shape: [2, 2], bytes: floats([1, 2, 3, 4]) } }));
  await give(page, small);
  await choose(page, "overview");
  assert.equal(await verdict(page), "valid");
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  const { bytes } = await convert(page);
  assert.ok(bytes.length > 0);
});
