// SPDX-License-Identifier: Apache-2.0
// Tests every view at three widths, light and dark: nothing scrolls sideways or leaves the window, controls have names
// and text has contrast. Screenshots of Chromium are in build/web/screenshots for people to look at; in Firefox, Playwright
// would add a style to the page, which the page's policy forbids.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { makeChain } from "./support/chain.mjs";
import { add, choose, give, pageTest, paint, verdict } from "./support/page.mjs";
import { floats, kBrowser, kMiniLm, kMiniLmVocabulary, kRoot, noise, quantized, safetensors, scratch, withoutData, withoutMiniLm } from "./support/tools.mjs";

const kPictures = join(kRoot, "build/web/screenshots");
const kWidths = [[360, 740], [1280, 860], [2560, 1300]];

/** Runs in the page: returns the layout faults. */
function faults() {
  const found = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.push(`the page is ${scrollWidth} wide in ${clientWidth}`);
  const visible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const clipped = (element) => element.closest(".visually-hidden, .table-scroll, .tensor-grid, .hex, .skip, .output, .changes, .tablist, .files");
  for (const element of document.querySelectorAll("wb-app *")) {
    if (!visible(element) || clipped(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.width > 0 && (box.right > clientWidth + 1 || box.left < -1)) {
      found.push(`${element.tagName}.${element.getAttribute("class")} from ${box.left} to ${box.right}`);
    }
  }
  for (const control of document.querySelectorAll("wb-app :is(button, input, select, textarea, [tabindex='0'])")) {
    if (!visible(control) || control.closest("[aria-hidden=true]")) continue;
    const name = control.getAttribute("aria-label") ?? control.labels?.[0]?.textContent ?? control.textContent;
    if (!name.trim()) found.push(`no name: ${control.outerHTML.slice(0, 100)}`);
  }
  return [...found, ...contrasts()];

  /** Texts with a contrast below WCAG's 4.5. */
  function contrasts() {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const rgba = (color) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b].map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
      .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const color = rgba(getComputedStyle(at).backgroundColor);
        if (color[3] === 255) return color;
      }
      return rgba("white");
    };
    const bad = new Set();
    for (const element of document.querySelectorAll("wb-app *")) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
      if (!own || !visible(element) || element.closest(":disabled, .visually-hidden, svg, option")) continue;
      const [front, back] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
      const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
      if (ratio < 4.5) bad.add(`contrast ${ratio.toFixed(2)}: ${element.tagName}.${element.getAttribute("class")} ${element.textContent.slice(0, 30)}`);
    }
    return [...bad];
  }
}

/** Checks the current view at every width in both themes. */
async function look(page, name) {
  const found = [];
  for (const theme of ["light", "dark"]) {
    await paint(page, theme);
    for (const [width, height] of kWidths) {
      await page.setViewportSize({ width, height });
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      for (const fault of await page.evaluate(faults)) found.push(`${name} ${width} ${theme}: ${fault}`);
      if (kBrowser === "chromium") await page.screenshot({ path: join(kPictures, `${name}-${width}-${theme}.png`) });
    }
  }
  await page.setViewportSize({ width: 1280, height: 860 });
  return found;
}

pageTest("a layout gone wrong would be noticed", {}, async (page) => {
  await page.evaluate(() => {
    const plant = Object.assign(document.createElement("button"), { textContent: " " });
    plant.style.width = "3000px";
    const pale = Object.assign(document.createElement("p"), { textContent: "pale" });
    pale.style.color = "#8888";
    document.querySelector("#main").append(plant, pale);
  });
  const found = (await page.evaluate(faults)).join("\n");
  for (const fault of [/the page is \d+ wide/, /BUTTON.* to 3\d\d\d/, /no name: <button/, /contrast .*: P/]) assert.match(found, fault);
});

pageTest("the first view, the sample, and what is broken", {}, async (page) => {
  mkdirSync(kPictures, { recursive: true });
  const found = await look(page, "welcome");
  const path = scratch("a-rather-long-name-of-a-file-that-nobody-would-ever-give-to-a-model-but-somebody-does.safetensors");
  const tensors = Object.fromEntries(Array.from({ length: 300 }, (_, at) =>
    [`encoder.layer.${at}.attention.self.query.with_a_long_tail_of_words_behind_it.weight`,
      { dtype: at % 3 === 0 ? "F16" : "F32", shape: [16, 8], bytes: noise(at % 3 === 0 ? 256 : 512) }]));
  writeFileSync(path, safetensors(tensors, { license: "Apache-2.0", "a.key": "x".repeat(900), words: "W".repeat(300) }));
  await give(page, path);
  await verdict(page);
  found.push(...await look(page, "overview"));
  await choose(page, "tensors");
  found.push(...await look(page, "tensors"));
  await choose(page, "bytes");
  await page.waitForSelector(".hex-row");
  await page.focus('.hex-bytes [data-at="12"]');
  await page.waitForSelector('[data-explained="12"]');
  found.push(...await look(page, "bytes"));
  await choose(page, "edit");
  await page.fill("wb-edit-panel .edit-row input >> nth=0", "MIT");
  await page.click("wb-edit-panel >> text=Preview");
  await page.waitForSelector("wb-edit-panel .hex-row");
  found.push(...await look(page, "edit"));
  await choose(page, "overview");
  const broken = scratch("broken.safetensors");
  const bytes = safetensors({ a: { dtype: "F32", shape: [4], bytes: floats([1, 2, 3, 4]) } });
  writeFileSync(broken, bytes.subarray(0, -5));
  assert.equal(await give(page, broken), "broken");
  await verdict(page);
  await page.waitForSelector(".hex-row");
  found.push(...await look(page, "broken"));
  await page.click(".brand");
  await page.click("#sample");
  await page.waitForSelector('wb-app[data-state="open"]');
  await choose(page, "tensors");
  await page.locator(".table-row").nth(1).click();
  await page.waitForSelector(".tensor-side .legend canvas");
  await page.waitForSelector(".tensor-side .hex-row");
  found.push(...await look(page, "tensor"));
  for (const blocks of [false, true]) {
    const codes = scratch(`fp8-${blocks ? "blocks" : "weights"}.safetensors`);
    writeFileSync(codes, quantized({ blocks }));
    await give(page, codes);
    await choose(page, "tensors");
    if (blocks) await page.waitForSelector("wb-tensors-panel .changes li");
    else await page.locator(".table-row").first().click();
    found.push(...await look(page, blocks ? "quantized-question" : "quantized"));
  }
  assert.deepEqual(found, []);
});

pageTest("two files side by side", {}, async (page) => {
  mkdirSync(kPictures, { recursive: true });
  const numbers = (seed, shift) => Array.from({ length: 96 * 160 }, (_, at) =>
    Math.sin(at * 0.013 * seed) + (Math.floor(at / 160) > 40 && at % 160 < 60 ? shift : 0));
  const model = (shift, more) => {
    const tensors = {};
    for (let layer = 0; layer < 12; layer += 1) {
      tensors[`model.layers.${layer}.self_attn.q_proj.weight`] = { dtype: "F32", shape: [96, 160],
        bytes: floats(numbers(layer + 1, shift * layer * 0.01)) };
    }
    return { ...tensors, [more]: { dtype: "F32", shape: [16], bytes: floats(Array.from({ length: 16 }, (_, at) => at + more.length)) } };
  };
  const [a, b] = [scratch("base-model.safetensors"), scratch("fine-tuned-model.safetensors")];
  writeFileSync(a, safetensors(model(0, "lm_head.bias"), { license: "Apache-2.0", step: "1000", long: "x".repeat(300) }));
  writeFileSync(b, safetensors(model(1, "classifier.bias.of.the.new.head"), { license: "MIT", step: "2000" }));
  await give(page, a);
  await choose(page, "compare");
  const found = await look(page, "compare-empty");
  await add(page, b);
  await page.waitForSelector("[data-compared]");
  found.push(...await look(page, "compare"));
  await page.click('wb-difference-table .table-row >> text=layers.11.');
  await page.waitForSelector("wb-difference-map .legend canvas");
  found.push(...await look(page, "difference"));
  assert.deepEqual(found, []);
});

pageTest("a model that tells stories, with its papers", { skip: withoutData }, async (page) => {
  mkdirSync(kPictures, { recursive: true });
  const chain = makeChain(scratch("chain"));
  const changed = scratch("other.adp1");
  const bytes = readFileSync(chain.adapter);
  bytes[bytes.length - 10] ^= 1;
  writeFileSync(changed, bytes);
  await give(page, ...Object.values(chain), changed);
  await verdict(page);
  const found = await look(page, "slm");
  await choose(page, "generate");
  await page.click("text=Generate >> nth=-1");
  await page.waitForFunction(() => /memory/.test(document.querySelector("wb-generate-panel .readout").textContent));
  found.push(...await look(page, "generate"));
  await choose(page, "admission");
  await page.waitForSelector("wb-admission-panel .adapter");
  found.push(...await look(page, "admission"));
  await choose(page, "convert");
  await page.waitForSelector("text=The plan");
  await page.selectOption("[name=format]", "safetensors");
  await page.waitForSelector('[data-plan="losses"]');
  found.push(...await look(page, "convert"));
  assert.deepEqual(found, []);
});

pageTest("a model that compares sentences", { skip: withoutMiniLm }, async (page) => {
  mkdirSync(kPictures, { recursive: true });
  await give(page, kMiniLm, kMiniLmVocabulary, join(dirname(kMiniLmVocabulary), "config.json"));
  await choose(page, "similarity");
  await page.click("wb-embed-panel >> text=Compare");
  await page.waitForSelector(".alike .scale");
  await page.click("wb-embed-panel >> text=Search >> nth=-1");
  await page.waitForSelector("wb-embed-panel .ranked li");
  const found = await look(page, "similarity");
  assert.deepEqual(found, []);
});
