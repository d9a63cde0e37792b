// SPDX-License-Identifier: Apache-2.0
// Tests the page without a mouse: arrows for tabs, Enter for rows, Escape back to the row, and the saved theme.

import assert from "node:assert/strict";

import { pageTest, textOf } from "./support/page.mjs";
import { kBrowser, withoutPage } from "./support/tools.mjs";

const focused = (page) => page.evaluate(() => {
  const { activeElement: at } = document;
  return at.dataset.tab ?? at.dataset.place ?? at.id ?? at.tagName;
});

pageTest("tabs, rows and the open tensor go by keys", {}, async (page) => {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.focus("#sample");
  await page.keyboard.press("Enter");
  await page.waitForSelector('wb-app[data-state="open"]');
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1", "the new view has the focus");
  const tabs = await page.$$eval("[data-tab]", (all) => all.map((each) => each.dataset.tab));
  await page.focus('[data-tab="overview"]');
  for (const tab of [...tabs.slice(1), tabs[0]]) {
    await page.keyboard.press("ArrowRight");
    assert.equal(await focused(page), tab);
    assert.equal(await page.getAttribute(`[data-tab="${tab}"]`, "aria-selected"), "true");
    assert.equal(await page.locator('[role="tabpanel"]:visible').count(), 1);
  }
  await page.keyboard.press("End");
  assert.equal(await focused(page), tabs.at(-1));
  await page.keyboard.press("Home");
  assert.equal(await focused(page), tabs[0]);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await focused(page), tabs.at(-1));
  assert.deepEqual(await page.$$eval("[data-tab]", (all) => all.filter((each) => each.tabIndex === 0).length), 1);

  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.focus('.table-row[tabindex="0"]');
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(page), "2");
  const name = await textOf(page, '.table-row[data-place="2"] .name');
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tensor-name");
  assert.equal(await textOf(page, ".tensor-name"), name);
  assert.ok(await page.evaluate(() => document.activeElement.classList.contains("tensor-name")));
  await page.waitForSelector(".tensor-side .histogram");
  await page.focus(".tensor-side .histogram");
  await page.keyboard.press("ArrowRight");
  assert.match(await textOf(page, ".tensor-side figure .readout"), /to .*: \d+/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".tensor-side").isVisible(), false);
  assert.equal(await focused(page), "2");
  await page.keyboard.press("End");
  assert.equal(await focused(page), "5");
});

const paper = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);

pageTest("the theme is a choice that is kept", {}, async (page) => {
  const light = await paper(page);
  await page.getByLabel("Dark").check({ force: true });
  assert.notEqual(await paper(page), light);
  await page.reload();
  await page.waitForSelector(".core:not(:empty)");
  assert.notEqual(await paper(page), light);
});

const withoutSetting = withoutPage || (kBrowser === "firefox" && "WebDriver BiDi cannot change the system's colors in Firefox 153");

pageTest("without a choice, the theme is the system's", { skip: withoutSetting }, async (page) => {
  const light = await paper(page);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.notEqual(await paper(page), light);
  await page.getByLabel("Light").check({ force: true });
  assert.equal(await paper(page), light);
  await page.getByLabel("Auto").check({ force: true });
  assert.notEqual(await paper(page), light);
});
