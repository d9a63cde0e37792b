// SPDX-License-Identifier: Apache-2.0
// Tests sentence similarity in the page against the command: the real MiniLM as safetensors with its vocabulary, and as
// a self-contained .weights file.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";

import { add, choose, give, pageTest, textOf, type, verdict } from "./support/page.mjs";
import { kData, kMiniLm, kMiniLmVocabulary, native, nativeJson, scratch, withoutData, withoutMiniLm } from "./support/tools.mjs";

const kPairs = [
  ["How do I reset my password?", "You can change your login details in the settings."],
  ["A man is playing a guitar.", "Ein Mann spielt Gitarre — naïve, 東京."],
];

async function similarity(page, [one, other]) {
  const fields = page.locator("wb-embed-panel textarea");
  await fields.nth(0).fill(one);
  await fields.nth(1).fill(other);
  await page.evaluate(() => document.querySelector("wb-embed-panel .alike").replaceChildren());
  await page.click("wb-embed-panel >> text=Compare");
  const result = await page.waitForSelector("wb-embed-panel .alike > *");
  return Number(await result.getAttribute("data-similarity"));
}

async function agree(page, pairs, ...args) {
  for (const pair of pairs) {
    const found = await similarity(page, pair);
    const [{ score }] = nativeJson(["similarity", ...args, ...pair]).results;
    assert.ok(Math.abs(found - score) < 1e-5, `${found} for ${score}: ${pair}`);
  }
}

pageTest("MiniLM as safetensors with vocabulary and settings", { skip: withoutMiniLm }, async (page) => {
  const began = performance.now();
  await give(page, kMiniLm, kMiniLmVocabulary, join(dirname(kMiniLmVocabulary), "config.json"));
  const sight = performance.now() - began;
  assert.ok(sight < 1000, `${sight} ms`);
  await choose(page, "similarity");
  await agree(page, kPairs, kMiniLm, "--vocab", kMiniLmVocabulary, "--heads", "12");
  await page.click("wb-embed-panel >> text=Search >> nth=-1");
  await page.waitForSelector("wb-embed-panel .ranked li");
  assert.match(await textOf(page, "wb-embed-panel .ranked li"), /reset my password|login details/);
});

pageTest("what is missing is asked for", { skip: withoutMiniLm }, async (page) => {
  await give(page, kMiniLm);
  await choose(page, "similarity");
  assert.match(await textOf(page, "wb-embed-panel .warning-text"), /vocab\.txt/);
  await page.click("wb-embed-panel >> text=Compare");
  await page.waitForSelector("wb-embed-panel .alike .failure");
  await add(page, kMiniLmVocabulary);
  await choose(page, "similarity");
  await page.click("wb-embed-panel >> text=Compare");
  await page.waitForSelector("wb-embed-panel .alike .failure");
  assert.match(await textOf(page, "wb-embed-panel .alike .failure"), /heads/);
  await type(page.getByLabel("Attention heads"), "12");
  await agree(page, kPairs.slice(0, 1), kMiniLm, "--vocab", kMiniLmVocabulary, "--heads", "12");
});

pageTest("a .weights file has all it needs", { skip: withoutData }, async (page) => {
  const path = scratch("tiny.weights");
  native(["convert", join(kData, "tiny_bert"), path, "--quiet"]);
  await give(page, path);
  assert.equal(await verdict(page), "valid");
  await choose(page, "similarity");
  await agree(page, kPairs, path);
});

pageTest("the real model as .weights", { skip: withoutMiniLm }, async (page) => {
  const path = scratch("minilm.weights");
  native(["convert", dirname(kMiniLmVocabulary), path, "--quiet"]);
  await give(page, path);
  await choose(page, "similarity");
  await agree(page, kPairs.slice(0, 1), path);
});
