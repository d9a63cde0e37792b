// SPDX-License-Identifier: Apache-2.0
// Tests every view with axe-core: roles, names, structure and contrast by the rules of WCAG 2.2, level AA, in both
// themes.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { makeChain } from "./support/chain.mjs";
import { add, choose, give, pageTest, paint, type, verdict } from "./support/page.mjs";
import { floats, kMiniLm, kMiniLmVocabulary, kRoot, quantized, safetensors, scratch, withoutData, withoutMiniLm, withoutPage } from "./support/tools.mjs";

const kAxe = join(kRoot, "web/node_modules/axe-core/axe.min.js");
const skip = withoutPage || (existsSync(kAxe) ? false : "axe-core is not installed: npm ci in web");

/** The rules that the current view breaks, in both themes. */
async function broken(page, view) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(readFileSync(kAxe, "utf8"));
  const found = [];
  for (const theme of ["light", "dark"]) {
    await paint(page, theme);
    const violations = await page.evaluate(async () => {
      const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
      const { violations: all } = await window.axe.run(document, { runOnly: { type: "tag", values: tags } });
      return all.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 120)).join(" | ")}`);
    });
    found.push(...violations.map((words) => `${view} ${theme}: ${words}`));
  }
  return found;
}

pageTest("a fault of a role or a name would be noticed", { skip }, async (page) => {
  await page.evaluate(() => {
    const plant = document.createElement("div");
    plant.setAttribute("role", "grid");
    plant.innerHTML = '<span role="gridcell"></span><button></button><img src="favicon.svg">';
    document.querySelector("#main").append(plant);
  });
  const found = (await broken(page, "planted")).join("\n");
  for (const rule of ["aria-required", "button-name", "image-alt"]) assert.ok(found.includes(rule), `${found} has ${rule}`);
});

pageTest("every view keeps the rules", { skip, timeout: 240_000 }, async (page) => {
  const found = await broken(page, "welcome");
  const [a, b, wrong] = ["a", "b", "wrong"].map((name) => scratch(`${name}.safetensors`));
  const tensors = (plus) => ({ w: { dtype: "F32", shape: [8, 16], bytes: floats(Array.from({ length: 128 }, (_, at) => at + plus)) },
    v: { dtype: "F32", shape: [3], bytes: floats([1, 2, 3]) } });
  writeFileSync(a, safetensors(tensors(0), { license: "MIT" }));
  writeFileSync(b, safetensors(tensors(0.5), { license: "Apache-2.0" }));
  writeFileSync(wrong, safetensors(tensors(0)).subarray(0, -3));
  await give(page, a);
  await verdict(page);
  found.push(...await broken(page, "overview"));
  await choose(page, "tensors");
  found.push(...await broken(page, "tensors"));
  await page.click(".table-row");
  await page.waitForSelector(".tensor-side .legend canvas");
  found.push(...await broken(page, "tensor"));
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  found.push(...await broken(page, "convert"));
  await choose(page, "bytes");
  await page.waitForSelector('[role="tabpanel"]:not([hidden]) .hex-row');
  await page.focus('.hex-bytes [data-at="0"]');
  await page.waitForSelector("[data-explained]");
  found.push(...await broken(page, "bytes"));
  await choose(page, "compare");
  found.push(...await broken(page, "a second file is missing"));
  await add(page, b);
  await page.waitForSelector("[data-compared]");
  found.push(...await broken(page, "compare"));
  await page.click("wb-compare-panel .table-row");
  await page.waitForSelector("wb-compare-panel .tensor-side canvas.heat");
  found.push(...await broken(page, "difference"));
  await give(page, wrong);
  await verdict(page);
  found.push(...await broken(page, "broken"));
  for (const blocks of [false, true]) {
    writeFileSync(a, quantized({ blocks }));
    await give(page, a);
    await choose(page, "tensors");
    if (blocks) await page.waitForSelector("wb-tensors-panel .changes li");
    found.push(...await broken(page, blocks ? "a question" : "quantized"));
  }
  assert.deepEqual(found, []);
});

pageTest("the views of a model that generates keep them too", { skip: skip || withoutData, timeout: 240_000 }, async (page) => {
  await give(page, ...Object.values(makeChain(scratch("chain"))));
  await verdict(page);
  await choose(page, "admission");
  await page.waitForSelector("wb-admission-panel .steps");
  const found = await broken(page, "admission");
  await choose(page, "generate");
  found.push(...await broken(page, "generate"));
  await type(page.locator('wb-generate-panel input[type="number"]').first(), "5");
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.waitForFunction(() => /memory/.test(document.querySelector("wb-generate-panel .readout").textContent));
  found.push(...await broken(page, "generated"));
  assert.deepEqual(found, []);
});

pageTest("and those of an encoder", { skip: skip || withoutMiniLm, timeout: 240_000 }, async (page) => {
  await give(page, kMiniLm, kMiniLmVocabulary, join(dirname(kMiniLmVocabulary), "config.json"));
  await choose(page, "similarity");
  const found = await broken(page, "similarity");
  const fields = page.locator("wb-embed-panel textarea");
  await fields.nth(0).fill("A man is playing a guitar.");
  await fields.nth(1).fill("Someone plays music.");
  await page.click("wb-embed-panel >> text=Compare");
  await page.waitForSelector("wb-embed-panel .alike > *");
  await page.click("wb-embed-panel >> text=Search >> nth=-1");
  await page.waitForSelector("wb-embed-panel .ranked li");
  found.push(...await broken(page, "compared and ranked"));
  assert.deepEqual(found, []);
});
