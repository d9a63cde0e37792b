// SPDX-License-Identifier: Apache-2.0
// Runs the whole corpus through one page: every file must have the findings of the command, without errors in the
// console or the page. Names that contain markup must stay text.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { choose, give, pageTest, rowNames, textOf, verdict } from "./support/page.mjs";
import { filesBelow, floats, kRoot, nativeVerdicts, safetensors, scratch, withoutNative } from "./support/tools.mjs";

const kSidecars = /\.(json|tokenizer|data)$/;

/** Each file of the corpus, with the files that the command finds by name: sidecars, external data, shards. */
function corpus() {
  const files = filesBelow(join(kRoot, "corpus"));
  const besides = (path) => {
    const name = basename(path), index = name.match(/^(.*)(?:\.(?:safetensors|bin)\.index|\.weights)\.json$/);
    if (index) return (other) => basename(other).startsWith(`${index[1]}${name.endsWith(".weights.json") ? "_" : "-"}0`);
    const first = name.match(/^(.*)-00001-of-(\d{5})\.gguf$/);
    if (first) return (other) => basename(other).startsWith(`${first[1]}-0`) && other.endsWith(`-of-${first[2]}.gguf`);
    if (kSidecars.test(name) || /-of-\d{5}\./.test(name)) return () => false;
    const stem = name.replace(/\.[^.]*$/, "");
    return (other) => (kSidecars.test(other) && basename(other).startsWith(`${stem}.`)) || basename(other) === `${stem}-base.zt`;
  };
  return files.map((path) => {
    const belongs = besides(path);
    return { path, beside: files.filter((other) => other !== path && dirname(other) === dirname(path) && belongs(other)) };
  });
}

/** Runs in the page: opens each file in turn, and returns what the page shows. */
async function throughThePage(cases) {
  const input = document.querySelector("#files");
  const app = document.querySelector("wb-app");
  const pool = [...document.querySelector("#corpus").files];
  const until = (condition) => new Promise((resolve, reject) => {
    const deadline = performance.now() + 10_000;
    const look = () => {
      if (condition()) resolve(true);
      else if (performance.now() > deadline) reject(new Error(`still ${app.dataset.state}: ${app.innerText.slice(0, 300)}`));
      else channel.port2.postMessage(null);
    };
    const channel = new MessageChannel();
    channel.port1.onmessage = () => setTimeout(look, 0);
    look();
  });
  const results = [];
  for (const files of cases) {
    document.querySelector(".brand").click();
    const transfer = new DataTransfer();
    for (const at of files) transfer.items.add(pool[at]);
    input.files = transfer.files;
    input.dispatchEvent(new Event("change"));
    await until(() => app.dataset.state !== "welcome" && document.querySelector("h1").textContent === pool[files[0]].name);
    await until(() => document.querySelector('[data-verdict="valid"], [data-verdict="broken"]') !== null ||
      app.dataset.state === "stopped");
    const more = [...document.querySelectorAll(".findings-box > button")];
    for (const button of more) button.click();
    const said = [...document.querySelectorAll(".verdict .finding, wb-broken-view .finding")].map((item) => {
      const terms = [...item.querySelectorAll("dt")];
      const offset = terms.find((term) => term.textContent === "Offset")?.nextElementSibling.textContent ?? null;
      return [item.dataset.rule, offset === null ? null : Number(offset.replace(/(\d),(?=\d{3})/g, "$1").replaceAll("\u00a0", " ").split(" ")[0])];
    });
    results.push({ state: app.dataset.state, valid: document.querySelector("[data-verdict]")?.dataset.verdict === "valid",
      format: document.querySelector(".badge.format")?.textContent ?? null, said });
  }
  return results;
}

pageTest("the whole corpus is judged as by the command, in one page", { skip: withoutNative, timeout: 400_000 }, async (page) => {
  const cases = corpus();
  assert.ok(cases.length > 500, `${cases.length} files`);
  const place = new Map(cases.map(({ path }, at) => [path, at]));
  await page.evaluate(() => {
    const input = document.createElement("input");
    Object.assign(input, { type: "file", multiple: true, id: "corpus", hidden: true });
    document.body.append(input);
  });
  await page.setInputFiles("#corpus", cases.map(({ path }) => path));
  const began = performance.now();
  const shown = await page.evaluate(throughThePage, cases.map(({ path, beside }) => [path, ...beside].map((each) => place.get(each))));
  const seconds = (performance.now() - began) / 1000;
  const expected = nativeVerdicts(cases.map(({ path }) => path));
  let rules = 0;
  const companions = new Set(cases.flatMap(({ beside }) => beside));
  for (const [at, { path }] of cases.entries()) {
    const { valid, findings } = expected[at];
    // The page has a later part without the first, which the command finds in the folder.
    if (companions.has(path) && shown[at].said.some(([rule]) => rule === "gguf/part-missing")) {
      assert.equal(shown[at].valid, false, path);
      continue;
    }
    // The page has a shard without the index, or the first file, that lies beside it in the folder.
    const whole = ([rule]) => !rule.endsWith("/shard-alone");
    assert.deepEqual(shown[at].said.filter(whole), findings.map(({ rule, offset }) => [rule, offset]).filter(whole), path);
    assert.equal(shown[at].valid, valid, path);
    assert.notEqual(shown[at].state, "stopped", path);
    rules += findings.length;
  }
  console.log(`${cases.length} files with ${rules} findings in ${seconds.toFixed(1)} s`);
});

pageTest("names and values that are markup stay text", {}, async (page) => {
  const markup = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;
  const turned = "abc\u202egnp.exe\u0000\u001b[31m";
  const path = scratch("<b>bold<\u2215b>.safetensors");
  writeFileSync(path, safetensors({
    [markup]: { dtype: "F32", shape: [2], bytes: floats([1, 2]) },
    [turned]: { dtype: "F32", shape: [1], bytes: floats([3]) },
  }, { [markup]: markup, "javascript:alert(1)": "data:text/html,x" }));
  await give(page, path);
  await verdict(page);
  assert.equal(await page.locator("wb-app img:not([src='favicon.svg']), wb-app script, wb-app a:not(.skip), wb-app b").count(), 0);
  assert.ok((await textOf(page, "wb-overview")).includes(markup));
  await choose(page, "tensors");
  const names = await rowNames(page);
  assert.ok(names.includes(markup));
  assert.ok(names.includes("abc‹U+202E›gnp.exe‹U+0000›‹U+001B›[31m"));
  for (const at of [0, 1]) {
    await page.locator(".table-row").nth(at).click();
    await page.waitForSelector(".tensor-side canvas.heat");
  }
  assert.equal(await page.locator("wb-app img:not([src='favicon.svg']), wb-app script, wb-app a:not(.skip), wb-app b").count(), 0);
  assert.match(await page.title(), /^<b>bold/);
});
