// SPDX-License-Identifier: Apache-2.0
// A browser with the page in it. `pageTest` is a test that also fails if the console reports an error, the page throws,
// the policy is violated, or a request goes anywhere but to the server of the page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";

import { chromium } from "playwright-core";

import { serve } from "../serve.mjs";
import { kChromium, kSite, withoutPage } from "./tools.mjs";

let started;
function start() {
  started ??= Promise.all([chromium.launch({ executablePath: kChromium }), serve(kSite)])
    .then(([browser, server]) => ({ browser, server }));
  return started;
}
after(async () => {
  if (started === undefined) return;
  const { browser, server } = await started;
  await browser.close();
  await server.close();
});

export const theBrowser = async () => (await start()).browser;

/** Unexpected events in a page. */
function watch(context, origin) {
  const seen = { problems: [], requests: [], origin };
  context.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") seen.problems.push(`console: ${message.text()}`);
  });
  context.on("weberror", (error) => seen.problems.push(`page: ${error.error().stack ?? error.error()}`));
  context.on("request", (request) => {
    seen.requests.push(request.url());
    if (!request.url().startsWith(origin) && !/^(blob|data):/.test(request.url())) {
      seen.problems.push(`request: ${request.url()}`);
    }
  });
  context.on("requestfailed", (request) => {
    if (!request.url().startsWith("blob:")) seen.problems.push(`failed: ${request.url()}`);
  });
  context.on("page", (page) => page.on("crash", () => seen.problems.push("the page crashed")));
  return seen;
}

/** A test with its own page. `body` takes the page and the recorded problems; it may clear those that it expects. */
export function pageTest(name, { skip = withoutPage, width = 1280, height = 900, theme = "light", timeout = 120_000 }, body) {
  test(name, { skip, timeout }, async () => {
    const { browser, server } = await start();
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, acceptDownloads: true });
    try {
      const seen = watch(context, server.url);
      const page = await context.newPage();
      page.setDefaultTimeout(20_000);
      await page.exposeFunction("reportViolation", (what) => seen.problems.push(`policy: ${what}`));
      await page.addInitScript(() => document.addEventListener("securitypolicyviolation", (event) =>
        window.reportViolation(`${event.violatedDirective} ${event.blockedURI}`)));
      await page.goto(server.url);
      await page.waitForSelector(".core:not(:empty)");
      await body(page, seen);
      assert.deepEqual(seen.problems, []);
      assert.ok(seen.requests.length > 5, "the requests were recorded");
    } finally {
      await context.close();
    }
  });
}

const SETTLED = ["open", "broken", "stopped"].map((state) => `wb-app[data-state="${state}"]`).join(", ");

/** Closes everything, gives the page these files like the file dialog, and waits until it shows the first. */
export async function give(page, ...paths) {
  await page.click(".brand");
  return add(page, ...paths);
}

/** The same without closing the open files. */
export async function add(page, ...paths) {
  await page.evaluate(() => { document.querySelector("wb-app").dataset.state = "given"; });
  await page.setInputFiles("#files", paths);
  await page.waitForSelector(SETTLED);
  return page.getAttribute("wb-app", "data-state");
}

/** Waits for the full check: "valid" or "broken". */
export async function verdict(page) {
  const element = await page.waitForSelector('[data-verdict="valid"], [data-verdict="broken"]', { state: "attached" });
  return element.getAttribute("data-verdict");
}

export const choose = (page, tab) => page.click(`[data-tab="${tab}"]`);

/** A text of the page without narrow spaces, to compare numbers. */
export const plain = (text) => text.replaceAll("\u202f", "").trim();

export const textOf = async (page, selector) => plain(await page.locator(selector).first().innerText());

/** A description list as an object. */
export function facts(page, selector) {
  return page.locator(selector).first().evaluate((list) => Object.fromEntries([...list.querySelectorAll("dt")].map((term) =>
    [term.textContent, term.nextElementSibling.textContent.replaceAll("\u202f", "")])));
}

/** The findings shown in the document, from their rows. */
export function findings(page) {
  return page.$$eval("li.finding", (items) => items.map((item) => {
    const rows = Object.fromEntries([...item.querySelectorAll("dl.facts dt")].map((term) =>
      [term.textContent.toLowerCase(), term.nextElementSibling.textContent.replaceAll("\u202f", "")]));
    const { rule, offset, expected = null, found = null, tensor = null } = rows;
    return { rule, offset: offset === undefined ? null : Number(offset.split(" ")[0]), expected, found, tensor,
      message: item.querySelector(".finding-message").textContent };
  }));
}

/** The visible names in the table of tensors, in order, once the table has its height. */
export const rowNames = (page) => page.evaluate(async () => {
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  return [...document.querySelectorAll(".table-row .cell.name")].map((cell) => cell.textContent);
});

/** The file that a click downloads. */
export async function downloaded(page, selector) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}
