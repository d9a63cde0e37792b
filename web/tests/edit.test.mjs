// SPDX-License-Identifier: Apache-2.0
// Tests the preview of an edit: what it says is what the command plans, and the download is what the command writes.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

import { choose, downloaded, give, pageTest, plain } from "./support/page.mjs";
import { floats, nativeJson, safetensors, scratch, withoutNative } from "./support/tools.mjs";

pageTest("metadata is changed, removed and added; the file is the command's", { skip: withoutNative }, async (page) => {
  const path = scratch("edited.safetensors");
  writeFileSync(path, safetensors({ w: { dtype: "F32", shape: [4], bytes: floats([1, 2, 3, 4]) } },
    { license: "MIT", step: "1", note: "gone" }));
  await give(page, path);
  await choose(page, "edit");
  const row = (key) => page.locator("wb-edit-panel .edit-row").filter({ has: page.getByLabel(key, { exact: true }) });
  await row("license").locator("input").fill("BSD");
  await row("note").locator("button").click();
  await page.fill("[name=new-key]", "more");
  await page.fill("[name=new-value]", "x");
  await page.click("wb-edit-panel >> text=Preview");
  await page.waitForSelector("wb-edit-panel [data-changed]");
  const options = ["--set", "license=BSD", "--set", "more=x", "--unset", "note"];
  const out = scratch("native.safetensors");
  const expected = nativeJson(["edit", path, ...options, "-o", out]);
  const changes = await page.$$eval("wb-edit-panel table.entries tbody tr", (rows) =>
    rows.map((each) => [...each.children].map((cell) => cell.textContent)));
  assert.deepEqual(changes, expected.changes.map(({ subject, from, to }) => [subject, from, to]));
  const { name, bytes } = await downloaded(page, "wb-edit-panel >> text=Download");
  assert.equal(name, "edited.safetensors");
  assert.ok(bytes.equals(readFileSync(out)), "the download is what the command writes");
  const before = readFileSync(path);
  const first = Number(await page.getAttribute("wb-edit-panel [data-changed]", "data-first"));
  assert.equal(first, before.findIndex((byte, at) => byte !== bytes[at]));
  assert.ok(await page.locator("wb-edit-panel .hex .changed").count() > 0);
});

pageTest("an edit that fits says so; nothing to change is said", { skip: withoutNative },
  async (page) => {
    const path = scratch("room.safetensors");
    writeFileSync(path, safetensors({ w: { dtype: "U8", shape: [1], bytes: Buffer.from([1]) } }, { license: "Apache-2.0" }));
    const before = readFileSync(path);
    await give(page, path);
    await choose(page, "edit");
    await page.click("wb-edit-panel >> text=Preview");
    await page.waitForSelector('wb-edit-panel [data-way="nothing"]');
    await page.fill("wb-edit-panel .edit-row input", "MIT");
    await page.keyboard.press("Enter");
    await page.waitForSelector('wb-edit-panel [data-way="in-place"]');
    assert.match(plain(await page.locator("wb-edit-panel [data-way]").innerText()), /Header/);
    assert.ok(before.equals(readFileSync(path)), "the opened file has not changed");
  });
