// SPDX-License-Identifier: Apache-2.0
// Tests the content-security policy as sent and as enforced by the browser, and that the server uses only the loopback
// address and serves only the site. The other tests fail if anything violates the policy or contacts another host; this
// one checks that they would notice.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { networkInterfaces } from "node:os";
import { test } from "node:test";

import { give, pageTest, verdict } from "./support/page.mjs";
import { POLICY, serve } from "./serve.mjs";
import { floats, kSite, safetensors, scratch, withoutPage } from "./support/tools.mjs";

/** Does in the page what the policy forbids. */
async function forbidden() {
  const script = document.createElement("script");
  script.textContent = "document.title = 'taken'";
  document.body.append(script);
  const image = document.createElement("img");
  image.src = "http://127.0.0.1:1/x.png";
  document.body.append(image);
  const style = document.createElement("style");
  style.textContent = "body { color: red }";
  document.body.append(style);
  await fetch("https://example.org/").catch(() => {});
  new Worker(URL.createObjectURL(new Blob(["1"])));
  await new Promise((resolve) => setTimeout(resolve, 50));
}

pageTest("a broken policy would be noticed", {}, async (page, seen) => {
  await page.evaluate(forbidden).catch(() => {});
  const broken = seen.problems.filter((problem) => problem.startsWith("policy: ")).map((problem) => problem.split(" ")[1]);
  for (const directive of ["script-src-elem", "img-src", "style-src-elem", "connect-src", "worker-src"]) {
    assert.ok(broken.includes(directive), `${directive} among ${broken}`);
  }
  assert.equal(await page.title(), "weighbridge");
  seen.problems.length = 0;
});

pageTest("the page asks for its own files only", {}, async (page, seen) => {
  const path = scratch("secret-name.safetensors");
  writeFileSync(path, safetensors({ "secret-tensor": { dtype: "F32", shape: [2], bytes: floats([1, 2]) } }, { key: "secret-value" }));
  const before = seen.requests.length;
  await give(page, path);
  await verdict(page);
  for (const tab of await page.$$eval("[data-tab]", (tabs) => tabs.map((each) => each.dataset.tab))) await page.click(`[data-tab="${tab}"]`);
  assert.deepEqual(seen.requests.filter((url) => !url.startsWith(seen.origin)), []);
  assert.ok(seen.requests.every((url) => !url.includes("secret")));
  assert.ok(seen.requests.length - before < 10, "a file that is opened is not fetched");
  assert.ok(seen.requests.some((url) => url.endsWith("/weighbridge.wasm")));
  const kept = await page.evaluate(() => ({ cookies: document.cookie, keys: Object.keys(localStorage) }));
  assert.deepEqual(kept, { cookies: "", keys: ["weighbridge.theme"] });
});

const answerOf = (url, path, method = "GET") => new Promise((resolve, reject) => {
  const { hostname, port } = new URL(url);
  request({ hostname, port, path, method }, (response) => {
    response.resume();
    resolve({ status: response.statusCode, headers: response.headers });
  }).on("error", reject).end();
});

test("the server gives the site, with its headers, and nothing else", { skip: withoutPage }, async () => {
  const server = await serve(kSite);
  try {
    const { status, headers } = await answerOf(server.url, "/");
    assert.equal(status, 200);
    assert.equal(headers["content-security-policy"], POLICY);
    assert.doesNotMatch(POLICY.replace("'wasm-unsafe-eval'", ""), /unsafe|\*|http/);
    assert.match(headers["content-type"], /^text\/html/);
    assert.equal((await answerOf(server.url, "/api/dist/core/simd/weighbridge.wasm")).headers["content-type"], "application/wasm");
    for (const path of ["/../README.md", "/%2e%2e/README.md", "/..%2f..%2fREADME.md", "/js", "/nothing", "/%00", "/%", "/js/..\\app.js"]) {
      assert.equal((await answerOf(server.url, path)).status, 404, path);
    }
    assert.equal((await answerOf(server.url, "/", "POST")).status, 405);
    const outside = Object.values(networkInterfaces()).flat().find(({ internal, family }) => !internal && family === "IPv4");
    if (outside) await assert.rejects(answerOf(server.url.replace("127.0.0.1", outside.address), "/"));
  } finally {
    await server.close();
  }
});
