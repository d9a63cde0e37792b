// SPDX-License-Identifier: Apache-2.0
// Tests a worker that dies: it is reported and replaced, and open models stay open. Also tests a page whose core cannot
// be loaded.

import assert from "node:assert/strict";
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";

import { choose, give, pageTest, textOf, verdict } from "./support/page.mjs";
import { floats, native, nativeVerdicts, safetensors, scratch, withoutNative } from "./support/tools.mjs";

function two() {
  return ["one", "two"].map((name) => {
    const path = scratch(`${name}.safetensors`);
    writeFileSync(path, safetensors({ [name]: { dtype: "F32", shape: [64], bytes: floats(Array(64).fill(name.length)) } }));
    return path;
  });
}

const kFault = `new BroadcastChannel("planted").onmessage = () => { throw new Error("planted"); };`;

/** Loads the page again with workers that can be broken. */
async function breakable(page) {
  await page.route("**/api/dist/worker.js", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `${await response.text()}\n${kFault}` });
  });
  await page.reload();
  await page.waitForSelector(".core:not(:empty)");
}

/** Breaks the worker like a fault in it. */
const kill = (page) => page.evaluate(() => {
  const channel = new BroadcastChannel("planted");
  channel.postMessage(null);
  channel.close();
});

pageTest("a worker that dies is reported and replaced", {}, async (page, seen) => {
  const [one, two_] = two();
  await breakable(page);
  await give(page, one);
  assert.equal(await verdict(page), "valid");
  await choose(page, "tensors");
  for (const turn of [1, 2]) {
    await kill(page);
    await page.waitForFunction((wanted) => document.querySelectorAll(".notice.error").length === wanted, turn);
    assert.match(await textOf(page, ".notice.error"), /A new one starts with the next step/);
    await page.locator(".table-row").first().click();
    await page.waitForSelector(".tensor-side dl.tiles");
    assert.match(await textOf(page, ".tensor-side dl.tiles"), /Minimum\s+3/);
    await page.keyboard.press("Escape");
  }
  await page.click(".notice >> text=Dismiss");
  assert.equal(await page.locator(".notice.error").count(), 1);
  await page.click(".notice >> text=Dismiss");
  await give(page, two_);
  await choose(page, "overview");
  assert.equal(await verdict(page), "valid");
  assert.equal(page.workers().length, 1);
  seen.problems = seen.problems.filter((problem) => !problem.includes("planted"));
});

pageTest("a worker that dies at work says so where the work was", {}, async (page, seen) => {
  const [one] = two();
  await breakable(page);
  await page.click("#sample");
  await page.waitForSelector('wb-app[data-state="open"]');
  await verdict(page);
  const said = page.evaluate(async () => {
    const wb = await (await import("./js/engine.js")).engine();
    const file = new File([new Uint8Array(8)], "x.safetensors");
    return wb.verify(file).then(() => "done", (error) => error.kind);
  });
  await kill(page);
  assert.ok(["lost", "done"].includes(await said));
  await give(page, one);
  assert.equal(await verdict(page), "valid");
  seen.problems = seen.problems.filter((problem) => !problem.includes("planted"));
});

pageTest("a large .zt is verified by several workers, as the command sees it", { skip: withoutNative }, async (page) => {
  const [count, size] = [4, 24 * 2 ** 20];
  const tensor = { dtype: "F32", shape: [size / 4], bytes: Buffer.alloc(size, "zt") };
  const [from, path] = [scratch("large.safetensors"), scratch("large.zt")];
  writeFileSync(from, safetensors(Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, tensor]))));
  native(["convert", from, path, "--digest", "sha256", "--quiet"]);
  await give(page, path);
  assert.equal(await verdict(page), "valid");
  const processors = await page.evaluate(() => navigator.hardwareConcurrency);
  assert.equal(page.workers().length, Math.min(processors, 3), "one for 32 MiB each");
  const file = openSync(path, "r+");
  for (const at of [1, 50, 90]) writeSync(file, "?", at * 2 ** 20);
  closeSync(file);
  await give(page, path);
  assert.equal(await verdict(page), "broken");
  const [{ findings }] = nativeVerdicts([path]);
  assert.equal(findings.length, 3);
  for (const { offset } of findings) assert.match(await textOf(page, ".verdict"), new RegExp(String(offset)));
});
