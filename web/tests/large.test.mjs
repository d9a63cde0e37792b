// SPDX-License-Identifier: Apache-2.0
// Tests very large files: a 4 GB file is shown within a second, whatever is viewed, and takes hardly any memory. Memory
// is the growth of the resident memory of the page's process, worker included; and the core's own, as it reports.

import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";

import { choose, give, pageTest, rowNames, textOf, type } from "./support/page.mjs";
import { floats, scratch, sparseSafetensors } from "./support/tools.mjs";

const kSize = 4 * 1024 ** 3 + 136;
const kMaxGrowth = 200 * 2 ** 20;

/** A file of /proc about each process that is alive. */
const ofProcesses = (file) => readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((id) => {
  try {
    return [[id, readFileSync(`/proc/${id}/${file}`, "utf8")]];
  } catch {
    return []; // it has ended
  }
});

/** Resident bytes of the processes with the pages, of the browser that this process started. */
function resident() {
  const status = new Map(ofProcesses("status"));
  const field = (id, name) => status.get(id)?.match(new RegExp(`^${name}:\\s+(\\d+)`, "m"))?.[1];
  const ours = (id) => id !== undefined && (id === String(process.pid) || ours(field(id, "PPid")));
  // Chromium's and Firefox's names for them.
  const pages = ofProcesses("cmdline").filter(([id, line]) => /--type=renderer\b|\s-contentproc\s.*\stab\0/.test(line) && ours(id));
  assert.notEqual(pages.length, 0, "there is a process with the page");
  return pages.reduce((sum, [id]) => sum + Number(field(id, "VmRSS")) * 1024, 0);
}

const coreMemory = (page) => page.evaluate(async () => (await (await import("./js/engine.js")).engine()).memory());

pageTest("4 GB are open within a second and 200 MB", {}, async (page) => {
  const path = sparseSafetensors(scratch("sparse.safetensors"), kSize);
  const file = openSync(path, "r+");
  writeSync(file, floats([1, -2, 3]), 0, 12, kSize - 12);
  closeSync(file);
  const before = resident();
  const began = performance.now();
  assert.equal(await give(page, path), "open");
  const sight = performance.now() - began;
  assert.ok(sight < 1000, `${sight} ms`);
  assert.match(await textOf(page, ".file-head"), /4\.0\s?GiB/);
  assert.match(await textOf(page, ".verdict"), /Opened by its structure/);
  await choose(page, "tensors");
  assert.deepEqual(await rowNames(page), ["weight"]);
  await page.locator(".table-row").first().click();
  await page.click("text=Draw the heat map");
  await page.waitForSelector(".tensor-side .legend canvas");
  const fields = page.locator(".tensor-side .index-input");
  await type(fields.nth(0), String(2 ** 20 - 1));
  await fields.nth(0).press("Enter");
  await type(fields.nth(1), "1021");
  await fields.nth(1).press("Enter");
  await page.waitForFunction(() => /= 1$/.test(document.querySelector(".tensor-side wb-heat-map .readout").textContent));
  await page.click('.part [data-move="Last"]');
  await page.waitForFunction(() => [...document.querySelectorAll(".part .hex-row")].at(-1)?.textContent.includes("00004040"));
  const grown = resident() - before;
  const core = await coreMemory(page);
  console.log(`first sight ${Math.round(sight)} ms, ${Math.round(grown / 2 ** 20)} MiB more resident, core ${Math.round(core / 2 ** 20)} MiB`);
  assert.ok(grown < kMaxGrowth, `${grown} bytes`);
  assert.ok(core < kMaxGrowth, `${core} bytes`);
});
