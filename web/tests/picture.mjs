// SPDX-License-Identifier: Apache-2.0
// Makes the README's picture of the page, docs/images/page.png: the tensors of a file, and one of them. After `make web`:
// node web/tests/picture.mjs FILE TENSOR [OUT]

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { serve } from "./serve.mjs";
import { choose, give, verdict } from "./support/page.mjs";
import { kChromium, kRoot, kSite } from "./support/tools.mjs";

const [file, tensor, out = join(kRoot, "docs/images/page.png")] = process.argv.slice(2);
const kMost = 150_000;  // bytes; a README is read on slow lines too

const browser = await chromium.launch({ executablePath: kChromium });
const server = await serve(kSite);
try {
  const page = await browser.newPage({ viewport: { width: 1240, height: 760 }, colorScheme: "light" });
  page.setDefaultTimeout(120_000);
  await page.goto(server.url);
  await page.waitForSelector(".core:not(:empty)");
  await give(page, file);
  await verdict(page);
  await choose(page, "tensors");
  await page.locator(".table-row", { hasText: tensor }).first().click();
  await page.waitForSelector(".heat, canvas, .histogram", { state: "visible" });
  await page.waitForTimeout(1000);  // until the last curve is drawn
  await page.screenshot({ path: out });
} finally {
  await browser.close();
  await server.close();
}
const { length } = readFileSync(out);
if (length > kMost) throw new Error(`${out} has ${length} bytes, more than ${kMost}`);
console.log(`${out}: ${length} bytes`);
