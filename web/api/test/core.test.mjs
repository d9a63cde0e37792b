// SPDX-License-Identifier: Apache-2.0
// The real core in a real worker, on files that the test makes: every call once, in both builds.

import assert from "node:assert/strict";
import { closeSync, existsSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Weighbridge, WeighbridgeError } from "../dist/index.js";
import { kData, kRepository, tinySafetensors, withoutCore, withoutData, withoutPlain } from "./support/tiny.mjs";

const folder = mkdtempSync(join(tmpdir(), "weighbridge-core-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const values = [1, -2, 3.5, 0, 5, 6];
const tiny = { name: "tiny.safetensors", bytes: tinySafetensors("a/b", [3, 2], values) };

for (const simd of [true, false]) {
  test(`open, read, convert, in the ${simd ? "SIMD" : "plain"} build`, { skip: simd ? withoutCore : withoutPlain }, async () => {
    const wb = await Weighbridge.start({ simd });
    assert.equal(wb.version.simd, simd);
    assert.ok((await wb.formats()).some(({ name, writes }) => name === "zt" && writes));
    const progress = [];
    const model = await wb.open(tiny, { onProgress: (...step) => progress.push(step) });
    assert.deepEqual([model.format, model.inspection.path], ["safetensors", tiny.name]);
    assert.equal(model.fileSize, tiny.bytes.length);
    assert.deepEqual(model.tensors.map(({ name, dtype, shape }) => [name, dtype, shape]), [["a/b", "f32", [3, 2]]]);
    const [{ offset, length }] = model.tensors[0].parts;
    assert.deepEqual(await model.bytes(offset, length), tiny.bytes.slice(offset, offset + length));
    const { mean, ...counts } = await model.statistics("a/b");
    assert.deepEqual(counts, { elements: 6, zeros: 1, nans: 0, infinities: 0, min: -2, max: 6 });
    assert.ok(Math.abs(mean - 2.25) < 1e-9);
    const histogram = await model.histogram("a/b", 4);
    assert.equal(histogram.counts.reduce((sum, count) => sum + count, 0), 6);
    assert.deepEqual([histogram.from, histogram.to], [-2, 6]);
    assert.deepEqual([...(await model.rows(0, 1, 2))], values.slice(2));
    await assert.rejects(model.rows(0, 2, 2), (error) => error.kind === "misuse");
    const data = await model.read("a/b");
    assert.deepEqual([data.dtype, data.shape, [...data.array]], ["f32", [3, 2], values]);
    const half = await model.read("a/b", { dtype: "f16" });
    assert.deepEqual([half.dtype, half.bytes.length, half.array], ["f16", 12, null]);
    const array = await model.extract("a/b");
    assert.equal(array.name, "a_b.npy");
    assert.equal(Buffer.from(await array.bytes()).subarray(1, 6).toString(), "NUMPY");
    const hash = await model.hash();
    const plan = await model.plan("zt", { encoding: "zstd", digest: "sha256" });
    assert.deepEqual([plan.possible, plan.losses, plan.output], [true, [], "tiny.zt"]);
    const output = await plan.convert();
    const again = await wb.open({ name: output.name, bytes: await output.bytes() });
    assert.equal(again.format, "zt");
    assert.equal((await again.hash()).digest, hash.digest);
    await output.save(join(folder, "tiny.zt"));
    assert.equal((await wb.verify(join(folder, "tiny.zt"))).valid, true);
    assert.ok((await wb.memory()) > 0);
    await Promise.all([model.close(), again.close()]);
    await assert.rejects(plan.convert(), (error) => error.kind === "misuse");
    wb.close();
  });
}

/** A file of bitsandbytes' int8 codes, of what completes them, and of a norm. Weights are code * SCB / 127. */
function quantized(codes = [1, -2, 3, -4, 5, 6, -7, 0], scales = "SCB") {
  const header = Buffer.from(JSON.stringify({ "x.weight": { dtype: "I8", shape: [2, 4], data_offsets: [0, 8] },
    [`x.${scales}`]: { dtype: "F32", shape: [2], data_offsets: [8, 16] }, norm: { dtype: "F32", shape: [1], data_offsets: [16, 20] } }));
  const length = Buffer.alloc(8);
  length.writeUInt32LE(header.length);
  const payload = [Buffer.from(codes), Buffer.from(new Float32Array([127, 254, 1]).buffer)];
  return { name: "int8.safetensors", bytes: new Uint8Array(Buffer.concat([length, header, ...payload])) };
}
const kNumbers = [1, -2, 3, -4, 10, 12, -14, 0];

test("codes of a quantization scheme are named and copied", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const model = await wb.open(quantized());
  assert.deepEqual(model.inspection.schemes, [{ id: "bitsandbytes-int8", name: "bitsandbytes int8", codes: 1, companions: 1 }]);
  assert.equal(model.inspection.parameters, 9);
  assert.deepEqual(model.tensors.map(({ scheme }) => scheme?.codes), [true, false, undefined]);
  const names = (error) => error.kind === "unsupported" && error.message.includes("bitsandbytes int8");
  await assert.rejects(model.statistics("x.weight"), names);
  await assert.rejects(model.read("x.weight", { dtype: "f32" }), names);
  const copy = await (await model.plan("zt")).convert();
  const again = await wb.open({ name: copy.name, bytes: await copy.bytes() });
  assert.equal((await model.diff(again)).equal, true);
  assert.deepEqual(again.inspection.schemes, model.inspection.schemes);
  await Promise.all([model.close(), again.close()]);
  wb.close();
});

test("the numbers of codes are a model", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const model = await wb.open(quantized());
  const numbers = await model.logical();
  assert.deepEqual(numbers.tensors.map(({ name, dtype, shape }) => [name, dtype, shape]), [["x.weight", "f32", [2, 4]], ["norm", "f32", [1]]]);
  const stored = { id: "bitsandbytes-int8", name: "int8 per row", tensors: ["x.weight", "x.SCB"], bytes: 16 };
  assert.deepEqual(numbers.tensors.map((tensor) => tensor.stored), [stored, undefined]);
  assert.deepEqual([numbers.inspection.schemes, numbers.inspection.parameters, numbers.format], [undefined, 9, "safetensors"]);
  const { min, max, elements, zeros } = await numbers.statistics("x.weight");
  assert.deepEqual([min, max, elements, zeros], [-14, 12, 8, 1]);
  assert.deepEqual((await numbers.histogram("x.weight", 2)).counts, [3, 5]);
  assert.deepEqual([...(await numbers.rows("x.weight", 1, 1))], kNumbers.slice(4));
  assert.deepEqual([...(await numbers.read("x.weight")).array], kNumbers);
  assert.equal((await (await numbers.extract("x.weight")).bytes()).length, 128 + 32);
  const half = await model.logical({ dtype: "f16" });
  assert.deepEqual([...(await half.read("x.weight", { dtype: "f32" })).array], kNumbers);
  await assert.rejects(model.logical({ dtype: "f33" }), (error) => error.kind === "misuse");
  // A file of the same numbers.
  const output = await (await model.plan("safetensors", { dequantize: "auto" })).convert();
  const dense = await wb.open({ name: output.name, bytes: await output.bytes() });
  assert.equal((await numbers.hash()).digest, (await dense.hash()).digest);
  assert.notEqual((await model.hash()).digest, (await dense.hash()).digest);
  for (const each of [model, numbers]) assert.equal((await each.diff(dense)).equal, true);
  const changed = await wb.open(quantized([1, -2, 3, -4, 5, 6, -7, 4]));
  assert.deepEqual((await model.diff(changed)).tensors.map(({ a, values }) => [a.name, values.maxAbs]), [["x.weight", 8]]);
  const map = await model.differenceMap(changed, { a: "x.weight", b: "x.weight" }, { high: 2, wide: 2 });
  assert.deepEqual(map.maxAbs, [0, 0, 0, 8]);
  // What is made from a model goes with it.
  await model.close();
  await assert.rejects(numbers.rows("x.weight", 0, 1), (error) => error.kind === "misuse");
  wb.close();
});

test("a model without codes is its own numbers, and a scheme that no tensor is of is misuse", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const model = await wb.open(tiny);
  assert.equal(await model.logical(), model);
  const misuse = (said) => (error) => error.kind === "misuse" && said.test(error.message);
  await assert.rejects(wb.open(tiny, { scheme: "gptq:zeros=v3" }), misuse(/it takes zeros=auto\|v1\|v2/));
  await assert.rejects(wb.open(tiny, { scheme: ["fp9"] }), misuse(/'fp9' is not a quantization scheme/));
  const asked = await wb.open(tiny, { scheme: ["gptq:zeros=v1"] });
  await assert.rejects(asked.logical(), misuse(/no tensor of the model is of the scheme gptq/));
  wb.close();
});

test("codes that are not decoded stay codes, and a plan says why", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const model = await wb.open(quantized([1, 2, 3, 4, 5, 6, 7, 8], "scale_weight"));
  const numbers = await model.logical();
  assert.deepEqual(numbers.tensors.map(({ name, scheme, stored }) => [name, scheme?.codes, stored]),
    [["x.weight", true, undefined], ["x.scale_weight", false, undefined], ["norm", undefined, undefined]]);
  await assert.rejects(numbers.statistics("x.weight"), (error) => error.kind === "unsupported" && /int8 with scales/.test(error.message));
  const { possible, blockers } = await model.plan("safetensors", { dequantize: "auto" });
  assert.deepEqual([possible, blockers.map(({ kind, subject }) => [kind, subject])], [false, [["unsupported", 'tensors["x.weight"]']]]);
  wb.close();
});

/** The bytes of an .npy file after its header. */
function elementsOf(path) {
  const bytes = readFileSync(path);
  return bytes.subarray(10 + bytes.readUInt16LE(8));
}
const kQuantized = join(kData, "quantized");
const withoutQuantized = withoutData || (existsSync(kQuantized) ? false : `there are no files of quantizing libraries: ${kQuantized}`);

for (const [name, dtype] of [["gptq_v1_b4_g32_asym", "f16"], ["fp8_block_128", "bf16"], ["bnb_nf4_bf16", "bf16"]]) {
  test(`the numbers of ${name} are those of its library, bit for bit`, { skip: withoutQuantized }, async () => {
    const wb = await Weighbridge.start();
    const numbers = await (await wb.open(join(kQuantized, name))).logical();
    const { expected } = JSON.parse(readFileSync(join(kQuantized, name, "expected.json"), "utf8"));
    for (const [weight, arrays] of Object.entries(expected)) {
      const { file, shape } = arrays.find((each) => each.dtype.toLowerCase() === dtype);
      const data = await numbers.read(weight);
      assert.deepEqual([data.dtype, data.shape], [dtype, shape], weight);
      assert.ok(elementsOf(join(kQuantized, name, file)).equals(data.bytes), weight);
    }
    wb.close();
  });
}

test("two models are compared, and the map shows where they differ", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const changed = { name: "changed.safetensors", bytes: tinySafetensors("a/b", [3, 2], [1, -2, 3.5, 0, 5, 8]) };
  const [a, b] = [await wb.open(tiny), await wb.open(changed)];
  assert.equal((await a.diff(a)).equal, true);
  const found = await a.diff(b);
  assert.deepEqual([found.equal, found.compared, found.different, found.a.path, found.b.path],
    [false, 1, 1, tiny.name, changed.name]);
  const [{ verdict, changes, values }] = found.tensors;
  assert.deepEqual([verdict, changes], ["different", ["changed"]]);
  assert.deepEqual([values.changed, values.maxAbs, values.first, values.largest], [1, 2, 5, 5]);
  assert.equal((await a.diff(b, { atol: 3 })).equal, true);
  assert.deepEqual((await a.diff(b, { rename: { "a/b": "c" }, match: "names" })).tensors.map((each) => each.verdict),
    ["only-a", "only-b"]);
  const map = await a.differenceMap(b, { a: "a/b", b: "a/b" }, { high: 2, wide: 2 });
  assert.deepEqual(map, { rows: 3, columns: 2, high: 2, wide: 2, maxAbs: [0, 0, 0, 2], changed: [0, 0, 0, 1],
    notFinite: [0, 0, 0, 0] });
  await assert.rejects(a.differenceMap(b, { a: "a/b", b: "c" }, { high: 2, wide: 2 }), (error) => error.kind === "misuse");
  await assert.rejects(a.diff(b, { atol: -2 }), (error) => error.kind === "misuse");
  await assert.rejects(a.diff(b, { atol: 1, exact: true }), (error) => error.kind === "misuse");
  const other = await Weighbridge.start();
  await assert.rejects(a.diff(await other.open(changed)), (error) => error.kind === "misuse");
  other.close();
  wb.close();
});

test("losses that no option allows are returned and said", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const text = (name, said) => ({ name, bytes: new TextEncoder().encode(said) });
  const folder = { name: "f", files: [{ name: "model.safetensors", bytes: tiny.bytes }, text("config.json", '{"model_type":"x"}'), text("README.md", "a card")] };
  const model = await wb.open(folder);
  const plan = await model.plan("zt");
  const said = [];
  const written = await plan.convert({ onLoss: (losses) => said.push(...losses) });
  assert.deepEqual([written.format, written.casts, written.losses.length > 0], ["zt", [], true]);
  assert.deepEqual(said, written.losses);
  assert.ok(said.every((loss) => loss.kind === "file" && loss.allowed && !loss.consented));
  const { warn } = console;
  const warned = [];
  console.warn = (line) => warned.push(line);
  try {
    await plan.convert();
    await (await model.plan("zt", { allow: ["file"] })).convert();
  } finally {
    console.warn = warn;
  }
  assert.equal(warned.length, 1);
  assert.match(warned[0], /^weighbridge: lost, and no option allows it: .*README\.md/);
  wb.close();
});

test("bytes are explained, of a broken file too", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const { spans, path, size } = await wb.explain(tiny, tiny.bytes.length - 1);
  assert.deepEqual([path, size], [tiny.name, tiny.bytes.length]);
  assert.deepEqual([spans[0].kind, spans.at(-1).kind, spans.at(-1).what], ["file", "element", "[2, 1]"]);
  assert.deepEqual([spans.at(-1).offset, spans.at(-1).size], [tiny.bytes.length - 4, 4]);
  const cut = { name: "cut.safetensors", bytes: tiny.bytes.slice(0, -1) };
  assert.ok((await wb.explain(cut, 0)).spans.length > 1);
  assert.equal((await wb.explain(tiny, tiny.bytes.length)).spans[0].kind, "file", "the end, where findings about cut files are");
  await assert.rejects(wb.explain(tiny, tiny.bytes.length + 1), (error) => error.kind === "misuse");
  await assert.rejects(wb.explain(tiny, 0.5), (error) => error.kind === "misuse");
  wb.close();
});

test("an edit is planned, and gives a new file", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const before = tiny.bytes.slice();
  const plan = await wb.planEdit(tiny, { set: { license: "MIT" } });
  assert.deepEqual([plan.path, plan.written, plan.changes.length], [tiny.name, false, 1]);
  assert.equal((await wb.planEdit(tiny)).way, "nothing");
  const { output, details } = await wb.edit(tiny, { set: { license: "MIT" }, rename: { "a/b": "c" } });
  assert.deepEqual([output.name, details.written, details.sizeAfter], [tiny.name, true, output.size]);
  const edited = await wb.open({ name: output.name, bytes: await output.bytes() });
  assert.deepEqual([edited.attributes.license, edited.tensors[0].name], ["MIT", "c"]);
  assert.deepEqual([...(await edited.read("c")).array], values);
  assert.deepEqual(tiny.bytes, before, "the source has not changed");
  // A format whose header cannot change alone is written as a new file.
  const npz = await (await (await wb.open(tiny)).plan("npz")).convert();
  const planned = await wb.planEdit({ name: npz.name, bytes: await npz.bytes() }, { rename: { "a/b": "c" } });
  assert.deepEqual([planned.way, planned.output, planned.changes.length], ["converted", npz.name, 1]);
  await assert.rejects(wb.edit(tiny, { unset: ["nothing"] }), (error) => error.kind === "misuse");
  wb.close();
});

test("what is wrong with a file comes with rule, offset and sentence", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const cut = { name: "cut.safetensors", bytes: tiny.bytes.slice(0, -1) };
  const verdict = await wb.verify(cut);
  assert.equal(verdict.valid, false);
  assert.equal(verdict.path, "cut.safetensors");
  assert.match(verdict.findings[0].rule, /^safetensors\//);
  await assert.rejects(wb.open(cut), (error) => {
    assert.ok(error instanceof WeighbridgeError);
    assert.deepEqual([error.kind, error.path], ["malformed", "cut.safetensors"]);
    assert.deepEqual(error.findings, verdict.findings);
    return true;
  });
  await assert.rejects(wb.open({ name: "empty", bytes: new Uint8Array(0) }), WeighbridgeError);
  const model = await wb.open(tiny);
  await assert.rejects(model.embedder(), WeighbridgeError);
  await assert.rejects(model.generator(), WeighbridgeError);
  await assert.rejects(model.tokenize("a"), WeighbridgeError);
  await assert.rejects(model.plan("nothing"), (error) => error.kind === "misuse");
  wb.close();
});

test("options that cannot be are misuse, and the sentence names what can", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const model = await wb.open(tiny);
  const refused = (promise, said) =>
    assert.rejects(promise, (error) => {
      assert.equal(error.kind, "misuse");
      assert.match(error.message, said);
      return true;
    });
  await refused(model.embedder({ pooling: "median" }), /pooling cannot be "median": it is one of mean cls max mean_sqrt_len weightedmean lasttoken$/);
  await refused(model.embedder({ precision: "f64" }), /precision cannot be "f64": it is one of f32 f16 bf16 int8$/);
  await refused(model.plan("zt", { encoding: "lzma" }), /encoding cannot be "lzma": it is one of raw zstd deflate zstd-seekable$/);
  await refused(model.plan("zt", { digest: "md5" }), /digest cannot be "md5": it is one of none sha256 crc32c xxh3$/);
  await refused(model.plan("slm", { quantize: "q2" }), /quantize cannot be "q2": it is one of q8_0 q4_0 .* q4_k_m .* f16 bf16 /);
  await refused(model.plan("zt", { cast: "i8" }), /cast cannot be "i8": it is one of .*f16/);
  await refused(model.plan("zt", { allow: ["dtype", "all"] }), /allow cannot be "all": it is one of attribute /);
  for (const number of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
    const whole = / must be a whole number from 0 to /;
    await refused(model.embedder({ maxLength: number }), /^max-length is a whole number from 2/);
    await refused(model.embedder({ heads: number }), /^heads is a whole number from 1 to 65536/);
    await refused(model.generator({ context: number }), /^context is a whole number from 2/);
    await refused(model.plan("zt", { encoding: "zstd", level: number }), /^level is a whole number from 1 to 19/);
    await refused(model.histogram(0, number), whole);
    await refused(model.rows(0, number, 1), whole);
    await refused(model.rows(0, 0, number), whole);
  }
  await refused(model.plan("zt", { encoding: "zstd", level: 20 }), /^level is a whole number from 1 to 19, not "20"$/);
  wb.close();
});

test("several workers find in a large file what one finds", { skip: withoutCore }, async () => {
  const [count, size] = [12, 8 * 2 ** 20];
  const header = JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) =>
    [`t${i}`, { dtype: "F32", shape: [size / 4], data_offsets: [i * size, (i + 1) * size] }])));
  const head = Buffer.alloc(8 + 4096, " ");
  head.writeBigUInt64LE(4096n);
  head.write(header, 8);
  const [one, three] = [await Weighbridge.start({ workers: 1 }), await Weighbridge.start({ workers: 3 })];
  const from = join(folder, "large.safetensors");
  writeFileSync(from, Buffer.concat([head, Buffer.alloc(count * size, "zt")]));
  const plan = await (await one.open(from)).plan("zt", { digest: "sha256" });
  const path = join(folder, "large.zt");
  await (await plan.convert()).save(path);
  assert.deepEqual(await three.verify(path), await one.verify(path));
  const model = await one.open(path);
  const file = openSync(path, "r+");
  for (const name of ["t0", "t5", "t6", "t11"]) writeSync(file, "?", model.tensors.find((t) => t.name === name).parts[0].offset + 9);
  closeSync(file);
  const verdict = await three.verify(path);
  assert.deepEqual(verdict, await one.verify(path));
  assert.deepEqual([verdict.valid, verdict.checked, verdict.findings.length], [false, "", 4]);
  one.close();
  three.close();
});

test("a file of 10 GB opens without being read, and is read beyond 4 GB", { skip: withoutCore }, async () => {
  const gigabytes = 10;
  const rows = gigabytes * 2 ** 18;
  const header = JSON.stringify({ big: { dtype: "F32", shape: [rows, 1024], data_offsets: [0, rows * 4096] } });
  const path = join(folder, "big.safetensors");
  const file = openSync(path, "w");
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(BigInt(Math.ceil(header.length / 8) * 8));
  writeSync(file, Buffer.concat([start, Buffer.from(header.padEnd(Math.ceil(header.length / 8) * 8))]));
  const size = 8 + Math.ceil(header.length / 8) * 8 + rows * 4096;
  ftruncateSync(file, size);
  writeSync(file, new Uint8Array(new Float32Array([42]).buffer), 0, 4, size - 4);
  closeSync(file);
  const wb = await Weighbridge.start();
  const began = performance.now();
  const model = await wb.open(path, { checks: "structure" });
  assert.ok(performance.now() - began < 1000, "opening took more than a second");
  assert.equal(model.fileSize, size);
  const last = await model.rows("big", rows - 1, 1);
  assert.equal(last.at(-1), 42);
  const stop = new AbortController();
  const hash = model.hash({ signal: stop.signal, onProgress: () => stop.abort() });
  await assert.rejects(hash, (error) => error.kind === "cancelled");
  assert.equal((await model.rows("big", 0, 1)).length, 1024);
  assert.ok((await wb.memory()) < 200e6);
  wb.close();
});

test("many small files do not add up", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  for (let round = 0; round < 20; ++round) await (await wb.open(tiny)).close();
  const before = await wb.memory();
  for (let round = 0; round < 300; ++round) {
    const model = await wb.open(tiny);
    await model.read("a/b");
    await (await model.plan("zt")).convert();
    await model.close();
  }
  assert.equal(await wb.memory(), before);
  writeFileSync(join(folder, "gone.safetensors"), tiny.bytes);
  const model = await wb.open(join(folder, "gone.safetensors"));
  rmSync(join(folder, "gone.safetensors"));
  await model.close();
  wb.close();
});

test("no message of an error controls a terminal", () => {
  const error = WeighbridgeError.of("io", "a\u001b[31m\u009b\u202e\u{e0041}\n\u00e9\\");
  assert.equal(error.message, "a\\x1b[31m\\u{9b}\\u{202e}\\u{e0041}\\n\u00e9\\");
});

test("a patch is verified and inspected, and one with a lying gap is refused", { skip: withoutCore }, async () => {
  const wb = await Weighbridge.start();
  const corpus = (name) => ({ name, bytes: new Uint8Array(readFileSync(join(kRepository, "corpus/zt", name))) });
  const verdict = await wb.verify(corpus("valid-patch.zt"));
  assert.deepEqual([verdict.valid, verdict.format, verdict.findings], [true, "zt", []]);
  const model = await wb.open(corpus("valid-patch.zt"));
  const said = JSON.stringify(model.inspection);
  for (const word of ["weighbridge.delta.base", "weighbridge.delta.result", "wb2:", "delta.op", "sparse"]) assert.ok(said.includes(word), word);
  await model.close();
  const refused = await wb.verify(corpus("patch-gap.zt"));
  assert.deepEqual([refused.valid, refused.findings.map(({ rule }) => rule)], [false, ["delta/gap"]]);
  wb.close();
});
