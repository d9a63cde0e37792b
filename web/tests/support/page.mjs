// SPDX-License-Identifier: Apache-2.0
// A browser with the page in it: Chromium, or Firefox by WebDriver BiDi. `pageTest` is a test that also fails if the
// console reports an error, the page throws, the policy is violated, or a request goes anywhere but to the server of the
// page.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { after, test } from "node:test";

import { chromium, firefox } from "playwright-core";

import { serve } from "../serve.mjs";
import { kBrowser, kExecutable, kSite, scratch, withoutPage } from "./tools.mjs";

const kDownloads = scratch("downloads");

const kLaunch = {
  chromium: () => chromium.launch({ executablePath: kExecutable }),
  // Playwright's own Firefox is a patched one; the channel makes it drive Mozilla's. Versions after 1.64 send it a
  // command that Firefox 153 does not know (emulation.setMediaFeaturesOverride).
  firefox: () => firefox.launch({ executablePath: kExecutable, channel: "moz-firefox", downloadsPath: kDownloads,
    firefoxUserPrefs: { "ui.prefersReducedMotion": 1, "layout.css.prefers-color-scheme.content-override": 1 } }),
};

let started;
function start() {
  mkdirSync(kDownloads, { recursive: true });
  started ??= Promise.all([kLaunch[kBrowser](), serve(kSite)]).then(([browser, server]) => ({ browser, server }));
  return started;
}
after(async () => {
  if (started === undefined) return;
  const { browser, server } = await started;
  await browser.close();
  await server.close();
});

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
export function pageTest(name, { skip = withoutPage, width = 1280, height = 900, timeout = 120_000 }, body) {
  test(name, { skip, timeout }, async () => {
    const { browser, server } = await start();
    const context = await browser.newContext({ viewport: { width, height }, acceptDownloads: true });
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

/** Shows the page in a theme of its own, without animations. Firefox's are off from its start. */
export async function paint(page, theme) {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.evaluate((value) => document.querySelector(`wb-theme input[value=${value}]`).click(), theme);
}

export const choose = (page, tab) => page.click(`[data-tab="${tab}"]`);

/** A text of the page without the commas between digits, to compare numbers. */
export const plain = (text) => text.replace(/(\d),(?=\d{3})/g, "$1").replaceAll("\u00a0", " ").trim();

export const textOf = async (page, selector) => plain(await page.locator(selector).first().innerText());

/** A description list as an object. */
export function facts(page, selector) {
  return page.locator(selector).first().evaluate((list) => Object.fromEntries([...list.querySelectorAll("dt")].map((term) =>
    [term.textContent, term.nextElementSibling.textContent.replace(/(\d),(?=\d{3})/g, "$1").replaceAll("\u00a0", " ")])));
}

/** The findings shown in the document, from their rows. */
export function findings(page) {
  return page.$$eval("li.finding", (items) => items.map((item) => {
    const rows = Object.fromEntries([...item.querySelectorAll("dl.facts dt")].map((term) =>
      [term.textContent.toLowerCase(), term.nextElementSibling.textContent.replace(/(\d),(?=\d{3})/g, "$1").replaceAll("\u00a0", " ")]));
    const { rule, offset, expected = null, found = null, tensor = null } = rows;
    return { rule, offset: offset === undefined ? null : Number(offset.split(" ")[0]), expected, found, tensor,
      message: item.querySelector(".finding-message").textContent };
  }));
}

/** The visible names in the table of tensors, in order, once the table has its height. */
export const rowNames = (page) => page.evaluate(async () => {
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  return [...document.querySelectorAll(".table-row .cell.name")].map((cell) => cell.getAttribute("aria-label"));
});

/** Types into a field, in place of what it holds, key by key: Firefox has no change for texts that are set, as fill() does. */
export async function type(field, text) {
  await field.press("Control+a");
  await field.pressSequentially(text);
}

/** The file that a click downloads. */
export async function downloaded(page, selector) {
  if (kBrowser === "firefox") return saved(page, selector);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

/** The same in Firefox 153, whose events have no id for the download of a Blob, so that Playwright passes over them. */
async function saved(page, selector) {
  await page.click(selector);
  const whole = () => {
    const names = readdirSync(kDownloads);
    const [name] = names.filter((each) => !each.endsWith(".part") && statSync(join(kDownloads, each)).size > 0);
    return name === undefined || names.length > 1 ? null : name;
  };
  const deadline = performance.now() + 20_000;
  while (whole() === null) {
    assert.ok(performance.now() < deadline, `nothing was downloaded: ${readdirSync(kDownloads)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const path = join(kDownloads, whole());
  const bytes = readFileSync(path);
  rmSync(path);
  return { name: basename(path), bytes };
}
