// SPDX-License-Identifier: Apache-2.0
// Tests opening files: real files of every format give the command's results within a second; the table of tensors; and
// for broken files the rule, the offset, the expected and found values, and the bytes there.

import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

import { add, choose, facts, findings, give, pageTest, rowNames, textOf, verdict } from "./support/page.mjs";
import { filesBelow, floats, kBrowser, kData, kRoot, native, nativeInspection, nativeVerdicts, noise, safetensors, scratch,
  withoutData, withoutNative } from "./support/tools.mjs";

const kFirstSight = 1000;

/** Real files, and one of each container that only the command writes. */
function realFiles() {
  const found = ["safetensors", "stb", "ztensor", "tiny_bert"].flatMap((name) => filesBelow(join(kData, name)))
    .filter((path) => /\.(safetensors|stb|zt)$/.test(path)).map((path) => [path]);
  const stories = join(kData, "llama/stories260K.bin");
  const tokenizer = join(kData, "llama/tok512.bin");
  const made = ["stories.slm", "tiny.weights", "shift.asp1"].map(scratch);
  const shift = scratch("shift.safetensors");
  const delta = Buffer.alloc(172 * 64 * 4);
  delta.writeFloatLE(0.5, 400);
  writeFileSync(shift, safetensors({ "layers.0.w1.weight": { dtype: "F32", shape: [172, 64], bytes: delta } }));
  native(["convert", stories, made[0], "--tokenizer", tokenizer, "--quiet"]);
  native(["convert", join(kData, "tiny_bert"), made[1], "--quiet"]);
  native(["slm", "adapter", made[0], shift, "--kind", "asp1", "-o", made[2], "--quiet"]);
  const keras = filesBelow(join(kRoot, "tests/interop/data/keras")).filter((path) => /\.(keras|h5)$/.test(path));
  const torch = ["state_dict.pth", "shared.pt", "legacy.pt"].map((name) => join(kRoot, "tests/interop/data/pytorch", name));
  return [...found, ...torch.map((path) => [path]), ...keras.map((path) => [path]), [stories, tokenizer], ...made.map((path) => [path])];
}

pageTest("real files of every format, as the command sees them", { skip: withoutData }, async (page) => {
  const files = realFiles();
  assert.ok(files.length > 30, `${files.length} files`);
  const formats = new Set();
  const times = [];
  const verdicts = nativeVerdicts(files.map(([path]) => path));
  for (const [at, [path, ...beside]] of files.entries()) {
    const began = performance.now();
    const state = await give(page, path, ...beside);
    times.push(performance.now() - began);
    assert.ok(times.at(-1) < kFirstSight, `${path}: ${times.at(-1)} ms`);
    const expected = verdicts[at];
    assert.equal(await verdict(page), expected.valid ? "valid" : "broken", path);
    // The page has a shard without the index that lies beside it in the folder.
    const rules = (all) => all.map(({ rule }) => rule).filter((rule) => !rule.endsWith("/shard-alone"));
    assert.deepEqual(rules(await findings(page)), rules(expected.findings), path);
    if (state !== "open") {
      assert.equal(expected.valid, false, path);
      continue;
    }
    formats.add(expected.format);
    const inspection = nativeInspection(path);
    assert.equal(await textOf(page, ".badge.format"), inspection.format);
    const shown = await facts(page, "wb-overview .columns .facts");
    assert.equal(shown.Tensors, String(inspection.tensors.length), path);
    assert.equal(shown.Version, inspection.version ?? "none stated", path);
    assert.match(await page.locator(".file-head .number").getAttribute("title"),
      new RegExp(`^${statSync(path).size} bytes?$`.replace(/\d(?=(\d{3})+ )/g, "$&,")), path);
    await choose(page, "tensors");
    const names = inspection.tensors.map(({ name }) => name).slice(0, 20);
    assert.deepEqual((await rowNames(page)).slice(0, names.length), names, path);
    await choose(page, "overview");
  }
  for (const format of ["safetensors", "zt", "zt0", "stb", "embd", "slm", "llama2c", "hdf5", "keras", "pytorch"]) assert.ok(formats.has(format), format);
  console.log(`${files.length} files, first sight: median ${Math.round(median(times))} ms, most ${Math.round(Math.max(...times))} ms`);
});

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

const withoutFolders = withoutData || (kBrowser === "firefox" && "WebDriver BiDi cannot choose a folder in Firefox 153");

pageTest("a folder is one model", { skip: withoutFolders }, async (page) => {
  const chooser = page.waitForEvent("filechooser");
  await page.click("text=Choose a folder");
  await (await chooser).setFiles(join(kData, "tiny_bert"));
  await page.waitForSelector('wb-app[data-state="open"]');
  assert.equal(await textOf(page, ".badge.format"), "hf");
  assert.equal(await verdict(page), "valid");
});

pageTest("a file can be dropped", {}, async (page) => {
  await page.evaluate((bytes) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([new Uint8Array(bytes)], "dropped.safetensors"));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  }, [...safetensors({ w: { dtype: "F32", shape: [2], bytes: floats([1, 2]) } })]);
  await page.waitForSelector('wb-app[data-state="open"]');
  assert.equal(await textOf(page, "h1"), "dropped.safetensors");
  assert.equal(await verdict(page), "valid");
});

pageTest("the table searches, sorts and filters", { skip: withoutData }, async (page) => {
  const path = join(kData, "tiny_bert/model.safetensors");
  const { tensors } = nativeInspection(path);
  const bytes = ({ parts }) => parts.reduce((sum, { length }) => sum + length, 0);
  await give(page, path);
  await choose(page, "tensors");
  const search = page.locator('input[type="search"]');
  await search.fill("LAYERNORM.weight");
  const wanted = tensors.filter(({ name }) => name.toLowerCase().includes("layernorm.weight")).map(({ name }) => name);
  assert.ok(wanted.length > 1);
  assert.deepEqual(await rowNames(page), wanted);
  assert.match(await textOf(page, ".table-tools .quiet"), new RegExp(`^${wanted.length} of ${tensors.length} tensors`));
  await search.fill("nothing has this name");
  assert.equal(await textOf(page, ".table-rows"), "No tensor matches this search.");
  await search.fill("");
  await page.click('[data-key="size"]');
  const least = Math.min(...tensors.map(bytes));
  const ascending = await rowNames(page);
  await page.click('[data-key="size"]');
  const descending = await rowNames(page);
  const sizeOf = (name) => bytes(tensors.find((tensor) => tensor.name === name));
  const most = Math.max(...tensors.map(bytes));
  assert.equal(sizeOf(ascending[0]), least);
  assert.equal(sizeOf(descending[0]), most);
  assert.deepEqual(descending.map(sizeOf), [...descending.map(sizeOf)].sort((a, b) => b - a));
  await page.click('[data-key="size"]');
  assert.deepEqual((await rowNames(page)).slice(0, 10), tensors.slice(0, 10).map(({ name }) => name));
  const dtypes = join(kData, "ztensor/zt11-wheel-1.1.1-dtypes.zt");
  if (!existsSync(dtypes)) return;
  await give(page, dtypes);
  await choose(page, "tensors");
  const ofDtype = nativeInspection(dtypes).tensors.filter(({ dtype }) => dtype === "f16").map(({ name }) => name);
  await page.selectOption("wb-tensor-table select", "f16");
  assert.deepEqual(await rowNames(page), ofDtype);
});

/** The offset that a finding's hex view marks. */
const markedByte = (page) => page.locator("li.finding .hex-bytes .marked").first().innerText()
  .then((digits) => parseInt(digits, 16));

pageTest("broken files say rule, offset, expected, found, and show the bytes", { skip: withoutData }, async (page) => {
  const damaged = scratch("damaged.zt");
  native(["convert", join(kData, "tiny_bert/model.safetensors"), damaged, "--digest", "sha256", "--quiet"]);
  const bytes = readFileSync(damaged);
  bytes[Math.floor(bytes.length / 2)] ^= 1;
  writeFileSync(damaged, bytes);
  const files = [damaged, join(kData, "safetensors/bad_abuse_1.safetensors"), join(kData, "stb/reference-packed.stb")];
  for (const [at, expected] of nativeVerdicts(files).entries()) {
    await give(page, files[at]);
    assert.equal(await verdict(page), "broken", files[at]);
    const shown = await findings(page);
    const pick = ({ rule, offset, tensor, message }) => ({ rule, offset, tensor, message });
    assert.deepEqual(shown.map(pick), expected.findings.map(pick), files[at]);
    assert.deepEqual(shown.map((each) => [each.expected, each.found]),
      expected.findings.map((each) => [each.expected || null, each.found || null]), files[at]);
    const { offset } = expected.findings[0];
    const content = readFileSync(files[at]);
    if (offset !== null && offset < content.length) assert.equal(await markedByte(page), content[offset], files[at]);
  }
  await give(page, damaged);
  await verdict(page);
  assert.equal(await page.locator('[data-tab="convert"]').count(), 0, "what is broken can be looked at only");
});

pageTest("a check that is not on the tab in sight runs too", { skip: withoutNative }, async (page) => {
  const sound = scratch("sound.safetensors");
  const broken = scratch("broken.zt");
  writeFileSync(sound, safetensors({ w: { dtype: "F32", shape: [1024], bytes: noise(4096) } }));
  native(["convert", sound, broken, "--digest", "sha256", "--quiet"]);
  const bytes = readFileSync(broken);
  bytes[Math.floor(bytes.length / 2)] ^= 1;
  writeFileSync(broken, bytes);
  await give(page, sound);
  await choose(page, "tensors");
  await add(page, broken);
  await page.waitForSelector('[data-badge="verdict"].error');
  assert.equal(await page.getAttribute('[data-tab="tensors"]', "aria-selected"), "true");
  assert.equal(await textOf(page, "h1"), basename(broken));
});

pageTest("the page's own sample is sound", {}, async (page) => {
  await page.click("#sample");
  await page.waitForSelector('wb-app[data-state="open"]');
  assert.equal(await verdict(page), "valid");
  await choose(page, "tensors");
  assert.equal((await rowNames(page)).length, 6);
});
