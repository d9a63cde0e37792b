// SPDX-License-Identifier: Apache-2.0
// Tests what the page downloads: within 5 % of what web/README.md states, as it is and compressed; and the admission panel
// only when an .slm is opened.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { choose, give, pageTest } from "./support/page.mjs";
import { kBrowser, kRoot, kSite, withoutPage } from "./support/tools.mjs";

const MIB = 1024 * 1024;

/** The files of the site that were requested, each once. */
const requested = ({ requests, origin }) => [...new Set(requests.filter((url) => url.startsWith(origin))
  .map((url) => new URL(url).pathname.replace(/\/$/, "/index.html")))];

// Firefox does not report the requests of workers.
const skip = withoutPage || (kBrowser !== "chromium" && "one browser is enough");

pageTest("the page downloads as much as its README says", { skip }, async (page, seen) => {
  const files = requested(seen);
  for (const name of ["/api/dist/core/simd/weighbridge.wasm", "/js/app.js", "/style.css"]) assert.ok(files.includes(name), `${name}: ${files}`);
  const bytes = files.map((path) => readFileSync(join(kSite, path)));
  const sum = (sizes) => sizes.reduce((all, { length }) => all + length, 0) / MIB;
  const found = [sum(bytes), sum(bytes.map((file) => gzipSync(file)))];
  const readme = readFileSync(join(kRoot, "web/README.md"), "utf8");
  const [, ...stated] = /downloads ([\d.]+) MiB, ([\d.]+) MiB if the server\s+compresses/.exec(readme) ?? [];
  assert.equal(stated.length, 2, "web/README.md states both sizes");
  for (const [at, size] of found.entries()) {
    assert.ok(Math.abs(size - stated[at]) <= 0.05 * stated[at], `${size.toFixed(2)} MiB, and web/README.md says ${stated[at]} MiB`);
  }
});

pageTest("the admission panel is loaded when an .slm is opened", { skip }, async (page, seen) => {
  const isLoaded = () => requested(seen).includes("/js/admission-panel.js");
  await give(page, join(kRoot, "corpus/safetensors/valid-empty.safetensors"));
  assert.equal(isLoaded(), false);
  await give(page, join(kRoot, "corpus/slm/valid-mixed.slm"));
  await choose(page, "admission");
  await page.waitForSelector("wb-admission-panel .steps");
  assert.equal(isLoaded(), true);
});
