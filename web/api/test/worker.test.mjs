// SPDX-License-Identifier: Apache-2.0
// Tests the package with real workers and a fake core: calls, progress, cancelling, workers that die, generation.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, truncateSync } from "node:fs";
import { after, afterEach, beforeEach, test } from "node:test";

import { Weighbridge, WeighbridgeError } from "../dist/index.js";
import { fakePackage } from "./support/fake_package.mjs";

const fake = fakePackage();
after(() => fake.remove());
const bytes = (text) => ({ name: `${text}.bin`, bytes: new TextEncoder().encode(text) });
const rejects = (promise, kind) => assert.rejects(promise, (error) => {
  assert.ok(error instanceof WeighbridgeError, String(error));
  assert.equal(error.kind, kind, error.message);
  return true;
});

let wb;
let lost;
beforeEach(async () => {
  wb = await Weighbridge.start({ base: fake.base, simd: false });
  lost = 0;
  wb.onlost = () => lost++;
});
afterEach(() => wb.close());
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

test("a model says what the core says, with exact attributes and the source's own name", async () => {
  const model = await wb.open(bytes("good"));
  assert.equal(model.inspection.path, "good.bin");
  assert.equal(model.fileSize, 4);
  assert.deepEqual(model.attributes, { big: 18446744073709551615n, text: "bigint:1234567890123456" });
  assert.deepEqual([...(await model.rows("w", 1, 2))], [1, 1, 1, 1]);
  const data = await model.read("w");
  assert.deepEqual([...data.array], [1, 2, 3, 4]);
  assert.equal((await model.hash()).path, "good.bin");
  await rejects(model.rows("v", 0, 1), "misuse");
  await model.close();
  await rejects(model.rows("w", 0, 1), "misuse");
});

test("a failure carries its kind, its findings and no folder of the worker", async () => {
  await assert.rejects(wb.open(bytes("bad")), (error) => {
    assert.equal(error.kind, "malformed");
    assert.equal(error.message, "bad.bin is bad");
    assert.equal(error.path, "x");
    assert.equal(error.findings[0].offset, 2 ** 64);
    return true;
  });
});

test("a file by its path is read in place, and its neighbors are seen", async () => {
  const path = fake.write("neighbor.bin", "good");
  assert.equal((await wb.open(path)).inspection.path, "neighbor.bin");
  await rejects(wb.open(`${path}.absent`), "io");
  assert.deepEqual([...(await wb.bytes(path, 1, 100))], [...Buffer.from("ood")]);
});

test("names that are no file's names are refused", async () => {
  for (const name of ["", ".", "..", "a/b", "a\0b", 3, undefined]) {
    await rejects(wb.verify({ name, bytes: new Uint8Array(1) }), "misuse");
  }
  await rejects(wb.verify({ name: "f", files: [{ name: "../x", bytes: new Uint8Array(1) }] }), "misuse");
  await rejects(wb.verify(null), "misuse");
});

test("progress comes at most about twenty times a second, the end always", async () => {
  const seen = [];
  const began = performance.now();
  await wb.verify(bytes("progress"), { onProgress: (done, total) => seen.push([done, total]) });
  assert.deepEqual(seen.at(-1), [100000, 100000]);
  assert.ok(seen.length <= 3 + (performance.now() - began) / 50, `${seen.length} reports`);
});

test("an aborted job ends with its worker, and models live on in the next", async () => {
  const model = await wb.open(bytes("good"));
  const stop = new AbortController();
  const verdict = wb.verify(bytes("hang"), { signal: stop.signal, onProgress: () => stop.abort() });
  const waiting = model.rows("w", 5, 1);
  await rejects(verdict, "cancelled");
  assert.deepEqual([...(await waiting)], [5, 5]);
  await settled();
  assert.equal(lost, 0);
  await rejects(wb.verify(bytes("good"), { signal: stop.signal }), "cancelled");
});

/** A file that `count` workers verify together. */
function shared(text, count) {
  const path = fake.write(`${text}.bin`, text);
  truncateSync(path, count * 32 * 1024 * 1024);
  return path;
}

for (const how of ["shared", "helper dies", "shared little"]) {
  test(`workers verify a large file together (${how})`, async () => {
    const several = await Weighbridge.start({ base: fake.base, simd: false, workers: 3 });
    const seen = [];
    const began = performance.now();
    const verdict = await several.verify(shared(how, 3), { onProgress: (done, total) => seen.push([done, total]) });
    assert.ok(seen.length <= 3 + (performance.now() - began) / 50, `${seen.length} reports`);
    assert.deepEqual(verdict.findings.map(({ rule, offset }) => [rule, offset]), [["index", 7], ["payload", 98],
      ["payload", 99], ["payload", 100], ["payload", 200], ["payload", 201], ["payload", 202], ["tail", 9]]);
    assert.equal(verdict.valid, false);
    const all = how.includes("little") ? 3e5 : 3e8;
    assert.deepEqual(seen.at(-1), [all, all]);
    assert.deepEqual(seen, [...seen].sort(([a], [b]) => a - b));
    assert.equal((await several.verify(shared("shared", 1))).findings.length, 4);
    assert.equal((await several.verify(bytes("good"))).valid, true);
    several.close();
  });
}

test("a file that is replaced between two workers is verified by one", async () => {
  const several = await Weighbridge.start({ base: fake.base, simd: false, workers: 2 });
  assert.equal((await several.verify(shared("shared, replaced", 2))).findings.length, 4);
  several.close();
});

test("without workers to help, the first one does it all", async () => {
  const other = fakePackage();
  const several = await Weighbridge.start({ base: other.base, simd: false, workers: 2 });
  other.remove();
  assert.equal((await several.verify(shared("shared", 2))).findings.length, 6);
  several.close();
});

for (const how of ["hang", "helper hangs"]) {
  test(`an aborted verification ends all of its workers (${how})`, async () => {
    const several = await Weighbridge.start({ base: fake.base, simd: false, workers: 2 });
    const stop = new AbortController();
    const verdict = several.verify(shared(how, 2), { signal: stop.signal });
    setTimeout(() => stop.abort(), 300);
    await rejects(verdict, "cancelled");
    assert.equal((await several.verify(shared("shared", 2))).findings.length, 6);
    several.close();
  });
}

test("a number of workers that cannot be is misuse", async () => {
  for (const workers of [0, -1, 1.5, 65, NaN]) {
    await rejects(Weighbridge.start({ base: fake.base, simd: false, workers }), "misuse");
  }
});

test("an aborted call that waits does not touch the worker", async () => {
  const stop = new AbortController();
  const first = wb.verify(bytes("progress"));
  const second = wb.verify(bytes("hang"), { signal: stop.signal });
  stop.abort();
  await rejects(second, "cancelled");
  assert.equal((await first).valid, true);
});

for (const [how, kind] of [["trap", "lost"], ["memory", "memory"], ["exit", "lost"]]) {
  test(`a worker that dies (${how}) is reported and replaced`, async () => {
    const model = await wb.open(bytes("good"));
    const plan = await model.plan("zt");
    await rejects(wb.verify(bytes(how)), kind);
    await settled();
    assert.equal(lost, 1);
    assert.equal((await wb.verify(bytes("good"))).valid, true);
    assert.equal((await plan.convert()).size, 9 * 1024 * 1024);
  });
}

test("a conversion comes in chunks, and is saved whole", async () => {
  const model = await wb.open(bytes("good"));
  const plan = await model.plan("zt");
  const output = await plan.convert();
  assert.equal(output.name, "good.bin.zt");
  const all = await output.bytes();
  assert.deepEqual([all.length, ...all.subarray(0, 3)], [9 * 1024 * 1024, 1, 2, 7]);
  assert.deepEqual(new Uint8Array(await (await output.blob()).arrayBuffer()), all);
  const path = fake.write("saved.zt", "old");
  await output.save(path);
  assert.ok(readFileSync(path).equals(all));
  await rejects(output.save(`${path}/no/folder`), "io");
});

test("what a format puts beside its file comes and is saved with it", async () => {
  const model = await wb.open(bytes("good"));
  const output = await (await model.plan("stb", { name: "a.stb" })).convert();
  assert.deepEqual(output.files.map(({ name, size }) => [name, size]), [["a.stb", 9 * 1024 * 1024], ["a.stb.json", 1]]);
  assert.equal(output.size, 9 * 1024 * 1024);
  await rejects(output.save(fake.write("b.stb", "")), "misuse");
  const path = fake.write("a.stb", "old");
  await output.save(path);
  assert.equal(readFileSync(`${path}.json`, "utf8"), "{");
});

test("generation streams, serves other calls in between, stops on abort and when it is left", async () => {
  const model = await wb.open(bytes("good"));
  const generator = await model.generator();
  assert.equal((await generator.complete("short")).text, "aaa");
  const stop = new AbortController();
  let pieces = 0;
  const endless = (async () => {
    for await (const piece of generator.generate("endless", { signal: stop.signal })) {
      assert.equal(piece.text, "a");
      if (++pieces === 3) {
        assert.equal((await wb.verify(bytes("good"))).valid, true);
        stop.abort();
      }
    }
  })();
  await rejects(endless, "cancelled");
  for await (const piece of generator.generate("endless")) if (piece.tokens > 2) break;
  assert.equal((await generator.complete("short")).tokens.length, 3);
  assert.equal(lost, 0);
});

test("a generation ends with its worker", async () => {
  const generator = await (await wb.open(bytes("good"))).generator();
  const pieces = generator.generate("endless");
  await pieces.next();
  await rejects(wb.verify(bytes("exit")), "lost");
  await rejects((async () => {
    for (;;) await pieces.next();
  })(), "lost");
});

test("closing a model ends the generation that it runs", async () => {
  const model = await wb.open(bytes("good"));
  const pieces = (await model.generator()).generate("endless");
  await pieces.next();
  await model.close();
  await rejects((async () => {
    for (;;) await pieces.next();
  })(), "cancelled");
});

test("a closed Weighbridge says so", async () => {
  const pending = wb.verify(bytes("hang"));
  await settled();
  wb.close();
  await rejects(pending, "cancelled");
  await rejects(wb.formats(), "misuse");
});

test("a core that cannot be loaded is reported", async () => {
  await rejects(Weighbridge.start({ base: fake.base, simd: true }), "lost");
  await rejects(Weighbridge.start({ base: new URL("nowhere/", fake.base) }), "lost");
});

test("a program that forgets to close ends by itself", () => {
  const program = `
    import { Weighbridge } from ${JSON.stringify(new URL("index.js", fake.base).href)};
    const wb = await Weighbridge.start({ simd: false });
    console.log((await wb.verify({ name: "a", bytes: new Uint8Array(1) })).valid);`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", timeout: 20000 });
  assert.deepEqual([status, stdout], [0, "true\n"], stderr);
});
