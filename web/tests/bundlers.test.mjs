// SPDX-License-Identifier: Apache-2.0
// Tests that a bundler finds the worker and the core of the npm package: Vite builds a project that uses it, without any
// setting, and a browser runs the result.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { chromium } from "playwright-core";

import { serve } from "./serve.mjs";
import { floats, kBrowser, kExecutable, kRoot, safetensors, scratch, withoutPage } from "./support/tools.mjs";

const kVite = join(kRoot, "build/vite/node_modules/vite/bin/vite.js");
const skip = withoutPage || (kBrowser !== "chromium" && "one browser is enough") ||
  (!existsSync(kVite) && "there is no Vite: tools/test-web.sh installs it");

const kProgram = (bytes) => `
  import { Weighbridge } from "weighbridge";
  const wb = await Weighbridge.start();
  const model = await wb.open({ name: "tiny.safetensors", bytes: new Uint8Array(${JSON.stringify([...bytes])}) });
  const { array } = await model.read("w");
  document.body.textContent = JSON.stringify({ simd: wb.version.simd, size: model.fileSize, numbers: [...array] });
`;

test("a project built by Vite runs", { skip, timeout: 120_000 }, async () => {
  const folder = scratch("vite");
  const own = join(folder, "node_modules/weighbridge");
  mkdirSync(own, { recursive: true });
  for (const name of ["package.json", "dist"]) cpSync(join(kRoot, "web/api", name), join(own, name), { recursive: true });
  const bytes = safetensors({ w: { dtype: "F32", shape: [2], bytes: floats([1.5, -2]) } });
  writeFileSync(join(folder, "package.json"), '{"private":true,"type":"module"}');
  writeFileSync(join(folder, "index.html"), '<!doctype html><title>t</title><link rel="icon" href="data:,"><script type="module" src="/main.js"></script>');
  writeFileSync(join(folder, "main.js"), kProgram(bytes));
  execFileSync(process.execPath, [kVite, "build", "--logLevel", "warn"], { cwd: folder, encoding: "utf8" });
  const names = readdirSync(join(folder, "dist/assets"));
  for (const kind of [/^worker-.*\.js$/, /^weighbridge-.*\.js$/, /^weighbridge-.*\.wasm$/]) assert.ok(names.some((name) => kind.test(name)), `${kind}: ${names}`);
  const server = await serve(join(folder, "dist"));
  const browser = await chromium.launch({ executablePath: kExecutable });
  try {
    const page = await browser.newPage();
    const problems = [];
    page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.goto(server.url);
    await page.waitForFunction(() => document.body.textContent.startsWith("{"), null, { timeout: 20_000 })
      .catch((error) => assert.fail(`${problems.join("\n")}\n${error}`));
    assert.deepEqual(JSON.parse(await page.textContent("body")), { simd: true, size: bytes.length, numbers: [1.5, -2] });
    assert.deepEqual(problems, []);
  } finally {
    await browser.close();
    await server.close();
  }
});
