// SPDX-License-Identifier: Apache-2.0
// Tests the explanation of bytes: under the pointer and the focus, it is what the command's explain says.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

import { choose, give, pageTest, plain, textOf, verdict } from "./support/page.mjs";
import { floats, nativeJson, safetensors, scratch, withoutNative } from "./support/tools.mjs";

const kLine = /[\s\u202f]+/g;

/** The spans that the page shows, once it explains the byte. */
async function shown(page, at, within = "wb-tabs") {
  await page.waitForSelector(`${within} [data-explained="${at}"]`);
  return page.$$eval(`${within} [data-explained="${at}"] .span`, (spans) => spans.map((span) => ({ kind: span.dataset.kind,
    what: span.querySelector("code").textContent, value: span.querySelector(".span-value")?.textContent ?? null })));
}

const command = (path, at) => nativeJson(["explain", path, `@${at}`], { statuses: [0, 1, 3] }).spans
  .map(({ kind, what, value }) => ({ kind, what, value }));

pageTest("the field under the pointer, and the one with the focus", { skip: withoutNative }, async (page) => {
  const path = scratch("fields.safetensors");
  writeFileSync(path, safetensors({ w: { dtype: "F32", shape: [2, 2], bytes: floats([1, 2.5, -3, 4]) } }, { license: "MIT" }));
  await give(page, path);
  await choose(page, "bytes");
  await page.waitForSelector(".hex-row");
  for (const at of [0, 12, 60]) {
    await page.hover(`.hex-bytes [data-at="${at}"]`);
    assert.deepEqual(await shown(page, at), command(path, at), `byte ${at}`);
  }
  const size = Number(await page.evaluate(() => document.querySelectorAll(".hex-bytes [data-at]").length));
  const last = size - 1;
  await page.focus(`.hex-bytes [data-at="${last}"]`);
  assert.deepEqual(await shown(page, last), command(path, last));
  assert.match(await textOf(page, ".explanation"), /Element/);
  const lit = () => page.$$eval(".hex-bytes .in-field", (cells) => cells.map((cell) => Number(cell.dataset.at)));
  assert.deepEqual(await lit(), [last - 3, last - 2, last - 1, last], "the four bytes of the element");
  await page.keyboard.press("ArrowLeft");
  await page.waitForSelector(`[data-explained="${last - 1}"]`);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Home");
  const row = Math.floor((last - 17) / 16) * 16;
  assert.deepEqual(await shown(page, row), command(path, row));
  assert.equal(await page.evaluate(() => document.activeElement.dataset.at), String(row));
  assert.equal(await page.locator('.hex [tabindex="0"]').count(), 1, "one byte is in the Tab order");
});

pageTest("keys turn pages and keep the place", { skip: withoutNative }, async (page) => {
  const path = scratch("long.safetensors");
  writeFileSync(path, safetensors({ w: { dtype: "F32", shape: [400], bytes: floats(Array.from({ length: 400 }, (_, at) => at)) } }));
  await give(page, path);
  await choose(page, "bytes");
  await page.waitForSelector(".hex-row");
  await page.focus('.hex-bytes [data-at="5"]');
  await page.keyboard.press("PageDown");
  assert.deepEqual(await shown(page, 261), command(path, 261));
  assert.equal(await page.evaluate(() => document.activeElement.dataset.at), "261");
  await page.keyboard.press("ArrowUp");
  await page.waitForSelector('[data-explained="245"]');
  await page.keyboard.press("PageUp");
  await page.waitForSelector('[data-explained="0"]');
});

pageTest("a broken file is explained, with the rule that a field breaks", { skip: withoutNative }, async (page) => {
  const path = scratch("wrong.safetensors");
  const bytes = safetensors({ a: { dtype: "F32", shape: [4], bytes: floats([1, 2, 3, 4]) } });
  const at = bytes.indexOf("[0,16]");
  bytes.write("[0,17]", at);
  writeFileSync(path, bytes);
  assert.equal(await give(page, path), "broken");
  await verdict(page);
  await page.locator(`wb-broken-view > .card .hex-bytes [data-at="${at}"]`).last().hover();
  await page.waitForSelector(`wb-broken-view [data-explained="${at}"]`);
  const { findings } = nativeJson(["explain", path, `@${at}`], { statuses: [0, 1, 3] });
  const said = plain(await page.locator(`[data-explained="${at}"]`).innerText()).replace(kLine, " ");
  for (const { rule } of findings) assert.ok(said.includes(rule), `${said}: ${rule}`);
  assert.ok(findings.length > 0);
});
