// SPDX-License-Identifier: Apache-2.0
// Tests an .slm in the page: conversion gives the command's bytes, generation gives the command's text, and the
// admission panel shows which adapters may be offered and why others may not.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

import { add, choose, downloaded, facts, findings, give, pageTest, textOf, type, verdict } from "./support/page.mjs";
import { makeChain } from "./support/chain.mjs";
import { kData, native, nativeInspection, nativeJson, scratch, withoutData, withoutNative } from "./support/tools.mjs";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const kPrompt = "Once upon a time";
const kNumbers = { maxTokens: 0, temperature: 1, topP: 2, topK: 3, seed: 4 };

/** Fills in the generation options. */
async function settings(page, values) {
  for (const [name, value] of Object.entries(values)) {
    await type(page.locator('wb-generate-panel input[type="number"]').nth(kNumbers[name]), String(value));
  }
}

const press = (page, name) => page.getByRole("button", { name, exact: true }).click();

/** The text that the page added to the prompt, as shown there. */
const added = (page) => page.$eval("wb-generate-panel .output", (output) => output.lastChild.data);

/** Generates to the end, and returns the text and the line below it. */
async function generate(page, values = {}) {
  await settings(page, values);
  await press(page, "Generate");
  await page.waitForFunction(() => /memory|^\u00a0$/.test(document.querySelector("wb-generate-panel .readout").textContent));
  return { text: await added(page), said: await textOf(page, "wb-generate-panel .readout") };
}

const greedy = (path, tokens, ...more) =>
  nativeJson(["generate", path, "--prompt", kPrompt, "--max-tokens", String(tokens), ...more]).text;

pageTest("a checkpoint becomes the command's .slm, and tells the command's story", { skip: withoutData }, async (page) => {
  const inputs = ["stories260K.bin", "tok512.bin"].map((name) => join(kData, "llama", name));
  const expected = scratch("stories260K.slm");
  native(["convert", inputs[0], expected, "--tokenizer", inputs[1], "--quiet"]);
  await give(page, ...inputs);
  await verdict(page);
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  assert.equal(await page.locator("wb-convert-panel .row .button.primary:visible").count(), 1, "planned, not yet converted");
  await page.selectOption("[name=format]", "slm");
  await page.waitForFunction(() => /stories260K\.slm/.test(document.querySelector("wb-convert-panel").textContent));
  await page.click("wb-convert-panel >> text=Convert >> nth=-1");
  await page.waitForSelector("text=Written, read back and compared.");
  const { name, bytes } = await downloaded(page, "wb-convert-panel >> text=Download stories260K.slm");
  assert.equal(name, "stories260K.slm");
  assert.equal(sha256(bytes), sha256(readFileSync(expected)));

  const opened = scratch("downloaded.slm");
  writeFileSync(opened, bytes);
  await give(page, opened);
  assert.equal(await verdict(page), "valid");
  const { checksums } = nativeInspection(opened);
  assert.equal(Object.keys(checksums).length, 3);
  const overview = await textOf(page, "wb-overview");
  for (const value of Object.values(checksums)) assert.ok(overview.includes(value), value);
  assert.ok(overview.includes("bpe"));

  await choose(page, "generate");
  const { text, said } = await generate(page, { maxTokens: 200, temperature: 0 });
  assert.equal(text, greedy(opened, 200));
  assert.match(said, /^200 tokens after a prompt of 5, [\d.]+ tokens a second · as many tokens as asked for · memory [\d.]+ MiB$/);
  const drawn = { temperature: 0.9, topP: 0.95, seed: 7, maxTokens: 60 };
  const first = await generate(page, drawn);
  const again = await generate(page, drawn);
  const other = await generate(page, { ...drawn, seed: 8 });
  assert.equal(first.text, again.text);
  assert.notEqual(first.text, other.text);
  assert.equal(first.text, greedy(opened, 60, "--temperature", "0.9", "--top-p", "0.95", "--seed", "7"));
  await page.locator("wb-generate-panel textarea").nth(1).fill("Lily");
  const stopped = await generate(page, { temperature: 0, maxTokens: 200 });
  assert.equal(stopped.text, greedy(opened, 200, "--stop", "Lily"));
  assert.match(stopped.said, /a stop text came/);
});

pageTest("text comes as it is made, Stop ends it, and the page goes on", { skip: withoutNative }, async (page) => {
  const path = scratch("slow.slm");
  native(["slm", "fixture", "tinylm16m", "--dtype", "q8_0", "-o", path, "--quiet"]);
  await give(page, path);
  assert.equal(await verdict(page), "valid");
  await choose(page, "generate");
  const { text } = await generate(page, { maxTokens: 12, temperature: 0 });
  assert.equal(text, greedy(path, 12));
  await page.evaluate(() => {
    window.lengths = [];
    new MutationObserver(() => window.lengths.push(document.querySelector("wb-generate-panel .readout").textContent))
      .observe(document.querySelector("wb-generate-panel .readout"), { childList: true, characterData: true, subtree: true });
  });
  await settings(page, { maxTokens: 4000 });
  await press(page, "Generate");
  await page.waitForFunction(() => window.lengths.filter((line) => /tokens?, /.test(line)).length > 5);
  const began = performance.now();
  await press(page, "Stop");
  await page.waitForFunction(() => document.querySelector("wb-generate-panel .readout").textContent.endsWith("stopped"));
  assert.ok(performance.now() - began < 1000);
  const counts = (await page.evaluate(() => window.lengths)).map((line) => parseInt(line, 10)).filter(Number.isFinite);
  assert.ok(counts.at(-1) < 4000 && counts.every((count, at) => at === 0 || count >= counts[at - 1]), `${counts}`);
  const once = await generate(page, { maxTokens: 12, temperature: 0 });
  assert.equal(once.text, text);
});

/** The records of a chain beside its artifact, and what the page shows about them. */
async function weigh(page, paths) {
  await give(page, paths[0], ...paths.slice(1));
  await verdict(page);
  await choose(page, "admission");
  await page.waitForSelector("wb-admission-panel .steps");
  const steps = await page.$$eval("wb-admission-panel .step", (items) =>
    Object.fromEntries(items.map((item) => [item.dataset.step, item.dataset.state])));
  const adapters = await page.$$eval("wb-admission-panel .adapter", (items) => items.map((item) => ({
    offered: item.dataset.offered === "true", can: !item.querySelector("input").disabled,
    reason: item.querySelector("p").firstChild.textContent, rule: item.querySelector("p code").textContent })));
  return { steps, adapters };
}

const kPassed = { manifest: "ok", artifact: "ok", "import receipt": "ok", registry: "ok" };

pageTest("an adapter whose papers hold is offered, and changes the text", { skip: withoutData }, async (page) => {
  const chain = makeChain(scratch("chain"));
  const { steps, adapters } = await weigh(page, Object.values(chain));
  assert.deepEqual(steps, kPassed);
  assert.deepEqual(adapters.map(({ offered, can }) => [offered, can]), [[true, true]]);
  const before = greedy(chain.artifact, 60);
  const expected = greedy(chain.artifact, 60, "--adapter", chain.adapter);
  assert.notEqual(before, expected);
  await choose(page, "generate");
  assert.equal((await generate(page, { maxTokens: 60, temperature: 0 })).text, before);
  await choose(page, "admission");
  await page.check("wb-admission-panel input");
  await choose(page, "generate");
  assert.match(await textOf(page, "wb-generate-panel"), /With 1 adapter: shift\.adp1/);
  assert.equal((await generate(page)).text, expected);
  await choose(page, "admission");
  await page.uncheck("wb-admission-panel input");
  await choose(page, "generate");
  assert.equal((await generate(page)).text, before);
});

/** The chain with one file rewritten by `change`, in its own folder. */
function changed(chain, name, role, change) {
  const folder = scratch(name);
  mkdirSync(folder);
  return Object.fromEntries(Object.entries(chain).map(([each, path]) => {
    const copy = join(folder, basename(path));
    if (each === role) writeFileSync(copy, change(readFileSync(path)));
    else copyFileSync(path, copy);
    return [each, copy];
  }));
}

pageTest("papers that do not hold say why an adapter is not offered", { skip: withoutData }, async (page) => {
  const chain = makeChain(scratch("papers"));
  const refused = ({ steps, adapters }, what) => {
    assert.equal(adapters.length, 1, what);
    const [{ offered, can, reason, rule }] = adapters;
    assert.deepEqual([offered, can], [false, false], what);
    assert.match(reason, /\w+ \w+/, what);
    assert.match(rule, /^[a-z0-9-]+\/[a-z0-9-]+$/, what);
    return { steps, reason, rule };
  };
  const flipped = (bytes) => {
    bytes[bytes.length - 10] ^= 1;
    return bytes;
  };
  const edited = (from, to) => (bytes) => Buffer.from(bytes.toString("utf8").replace(from, to));

  const adapter = refused(await weigh(page, Object.values(changed(chain, "adapter", "adapter", flipped))), "a changed adapter");
  assert.deepEqual(adapter.steps, { ...kPassed, registry: "error" }, "the registry reads what it lists");
  assert.match(adapter.reason, /shift\.adp1/);

  const { receipt: _, ...without } = chain;
  const noReceipt = refused(await weigh(page, Object.values(without)), "no receipt");
  assert.equal(noReceipt.steps["import receipt"], "absent");
  assert.match(noReceipt.reason, /receipt/);

  const registry = changed(chain, "registry", "registry", edited(/selector_model_byte_budget=\d+/, "selector_model_byte_budget=99999999"));
  assert.equal(refused(await weigh(page, Object.values(registry)), "a tampered registry").steps.registry, "error");
  assert.ok((await findings(page)).some(({ rule }) => rule.startsWith("chain/")));

  const ledger = changed(chain, "ledger", "ledger", edited(/entry\.0\.bytes=\d+/, "entry.0.bytes=1"));
  assert.equal(refused(await weigh(page, Object.values(ledger)), "an edited ledger").steps.registry, "error");

  const manifest = changed(chain, "manifest", "manifest", edited("publisher.id=example", "publisher.id=someone"));
  assert.equal(refused(await weigh(page, Object.values(manifest)), "another manifest").steps["import receipt"], "error");

  const artifact = changed(chain, "artifact", "artifact", flipped);
  await give(page, ...Object.values(artifact));
  assert.equal(await verdict(page), "broken");
  assert.equal(await page.locator('[data-tab="generate"]').count(), 0);

  const alone = await weigh(page, [chain.artifact, chain.adapter]);
  assert.deepEqual(alone.steps, { manifest: "absent", artifact: alone.steps.artifact, "import receipt": "absent", registry: "absent" });
  refused(alone, "no papers at all");
  await add(page, chain.manifest, chain.receipt, chain.ledger, chain.registry);
  await choose(page, "admission");
  await page.waitForSelector('wb-admission-panel .adapter[data-offered="true"]');
  assert.equal((await facts(page, "wb-overview .columns .facts")).Format, "slm");
});
