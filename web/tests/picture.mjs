// SPDX-License-Identifier: Apache-2.0
// Makes the README's picture of the page, docs/images/page.png: the tensors of a file, and one of them. After `make web`:
// node web/tests/picture.mjs FILE TENSOR [OUT]

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { serve } from "./serve.mjs";

const kRoot = fileURLToPath(new URL("../../", import.meta.url));
const kMaxBytes = 150_000;  // bytes; a README is read on slow lines too
const [file, tensor, out = join(kRoot, "docs/images/page.png")] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath: process.env.WEIGHBRIDGE_CHROMIUM || "/usr/bin/chromium" });
const server = await serve(join(kRoot, "build/web/site"));
try {
  const page = await browser.newPage({ viewport: { width: 1240, height: 760 }, colorScheme: "light" });
  page.setDefaultTimeout(120_000);
  await page.goto(server.url);
  await page.waitForSelector(".core:not(:empty)");
  await page.setInputFiles("#files", [file]);
  await page.waitForSelector('[data-verdict="valid"]', { state: "attached" });
  await page.click('[data-tab="tensors"]');
  await page.locator(".table-row", { hasText: tensor }).first().click();
  await page.waitForSelector("wb-tensor-view canvas");
  await page.waitForTimeout(1000);  // until the heat map is drawn
  await page.screenshot({ path: out });
} finally {
  await browser.close();
  await server.close();
}
const { length } = readFileSync(out);
if (length > kMaxBytes) throw new Error(`${out} has ${length} bytes, more than ${kMaxBytes}`);
console.log(`${out}: ${length} bytes`);
