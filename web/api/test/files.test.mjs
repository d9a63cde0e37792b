// SPDX-License-Identifier: Apache-2.0
// Tests the parts without a worker: read-ahead, chunks, file system operations, JSON with long integers, names, the
// choice of the build.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ReadAhead } from "../dist/byte_file.js";
import { Chunks } from "../dist/chunks.js";
import { hasSimd } from "../dist/core.js";
import { cosine } from "../dist/embedder.js";
import { Directory, FileTree, InputFile } from "../dist/files.js";
import { parseCoreText } from "../dist/json.js";
import { outputName } from "../dist/plan.js";
import { typedArray } from "../dist/typed_array.js";
import { FakeFs } from "./support/fake_core.mjs";

const kMiB = 1024 * 1024;
const text = (bytes) => new TextDecoder().decode(bytes);

/** A file of any size that counts its reads; each byte is its offset modulo 251. */
class Counted {
  reads = [];
  constructor(size, readAhead) {
    this.size = size;
    this.readAhead = readAhead;
  }
  readInto(target, offset) {
    assert.ok(offset >= 0 && offset + target.length <= this.size, "a read outside the file");
    this.reads.push([offset, target.length]);
    for (let at = 0; at < target.length; ++at) target[at] = (offset + at) % 251;
  }
}

function check(file, position, length) {
  const target = new Uint8Array(length).fill(255);
  const count = file.read(target, position);
  for (let at = 0; at < count; ++at) assert.equal(target[at], (position + at) % 251, `byte ${position + at}`);
  return count;
}

test("small reads of a header cost one slice, wherever it lies in 10 GB", () => {
  const file = new Counted(10 * 2 ** 30, 4 * kMiB);
  const ahead = new ReadAhead(file);
  for (let at = 0; at < 60000; at += 7) check(ahead, at, 7);
  assert.deepEqual(file.reads, [[0, 65536]]);
  assert.equal(check(ahead, 10 * 2 ** 30 - 5, 100), 5);
  assert.equal(check(ahead, 10 * 2 ** 30, 100), 0);
  assert.equal(check(ahead, 11 * 2 ** 30, 100), 0);
  assert.deepEqual(file.reads.slice(1), [[10 * 2 ** 30 - 5, 5]]);
});

test("reading from end to end grows to pieces of 4 MiB", () => {
  const file = new Counted(20 * kMiB + 3, 4 * kMiB);
  const ahead = new ReadAhead(file);
  for (let at = 0; at < file.size; at += 100000) check(ahead, at, 100000);
  assert.ok(file.reads.length < 14, `${file.reads.length} reads`);
  assert.equal(file.reads.reduce((sum, [, length]) => sum + length, 0), file.size);
  const large = new Counted(9 * kMiB, 4 * kMiB);
  assert.equal(new ReadAhead(large).read(new Uint8Array(9 * kMiB), 0), 9 * kMiB);
  assert.deepEqual(large.reads.map(([, length]) => length / kMiB), [4, 4, 1]);
});

test("reads at random offsets and of every length are right", () => {
  const ahead = new ReadAhead(new Counted(3 * kMiB + 17, 256 * 1024));
  let state = 1;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  for (let round = 0; round < 500; ++round) {
    const position = random(3 * kMiB + 100);
    const length = random(round % 10 === 0 ? 700000 : 5000);
    assert.equal(check(ahead, position, length), Math.max(0, Math.min(length, 3 * kMiB + 17 - position)));
  }
});

for (const stored of [false, true]) {
  test(`chunks behave as one buffer${stored ? ", those put away too" : ""}`, async () => {
    const away = new Map();
    const store = stored ? { put: (bytes) => {
      const blob = new Blob([bytes]);
      away.set(blob, bytes.slice());
      return blob;
    }, get: (blob) => away.get(blob).slice() } : null;
    const size = 90 * kMiB;
    const chunks = new Chunks(store);
    const plain = new Uint8Array(size);
    let end = 0;
    let state = 7;
    const random = (below) => (state = (state * 48271) % 2147483647) % below;
    for (let round = 0; round < 60; ++round) {
      const bytes = new Uint8Array(random(5 * kMiB)).fill(round + 1);
      const at = random(size - bytes.length);
      chunks.write(bytes, at);
      plain.set(bytes, at);
      end = Math.max(end, at + bytes.length);
      if (round % 20 === 13) {
        end -= random(3 * kMiB);
        chunks.resize(end);
        plain.fill(0, end);
      }
      const target = new Uint8Array(random(6 * kMiB)).fill(9);
      const from = random(size);
      const count = chunks.read(target, from);
      assert.equal(count, Math.max(0, Math.min(target.length, end - from)));
      assert.ok(Buffer.from(target.buffer, 0, count).equals(plain.subarray(from, from + count)), `round ${round}`);
    }
    assert.equal(chunks.size, end);
    const taken = chunks.take();
    assert.equal(taken.some((chunk) => chunk instanceof Blob), stored);
    const all = Buffer.from(await new Blob(taken).arrayBuffer());
    assert.ok(all.equals(plain.subarray(0, end)));
    assert.equal(chunks.size, 0);
  });
}

function throwsErrno(fs, number, work) {
  assert.throws(work, (error) => error instanceof fs.ErrnoError && error.errno === number);
}

test("the file system answers as Emscripten asks", () => {
  const fs = new FakeFs();
  const tree = new FileTree(fs, "/out", true, null);
  const errno = (number, work) => throwsErrno(fs, number, work);
  errno(44, () => fs.lookup("/out/absent"));
  const root = fs.lookup("/out");
  const folder = root.node_ops.mknod(root, "folder", 0o040755);
  const file = folder.node_ops.mknod(folder, "a", 0o100644);
  errno(20, () => folder.node_ops.mknod(folder, "a", 0o100644));
  errno(28, () => folder.node_ops.mknod(folder, "device", 0o020644));
  fs.write(file, Buffer.from("hello"), 2 ** 33);
  assert.equal(file.node_ops.getattr(file).size, 2 ** 33 + 5);
  assert.equal(text(fs.read("/out/folder/a", 9, 2 ** 33 - 1)), "\0hello");
  const { llseek } = file.stream_ops;
  assert.equal(llseek({ node: file, position: 5 }, -1, 2), 2 ** 33 + 4);
  assert.equal(llseek({ node: file, position: 5 }, 3, 1), 8);
  errno(28, () => llseek({ node: file, position: 5 }, -1, 0));
  file.node_ops.setattr(file, { size: 1, mode: 0o100600 });
  assert.equal(file.node_ops.getattr(file).size, 1);
  file.stream_ops.allocate({ node: file }, 4, 4);
  assert.equal(file.node_ops.getattr(file).size, 8);
  errno(55, () => root.node_ops.rmdir(root, "folder"));
  assert.deepEqual(folder.node_ops.readdir(folder), [".", "..", "a"]);
  const other = folder.node_ops.mknod(folder, "b", 0o100644);
  fs.write(other, Buffer.from("other"), 0);
  fs.nodes.delete(`${folder.id}/b`);
  other.node_ops.rename(other, folder, "a");
  fs.nodes.set(`${folder.id}/a`, other);
  assert.equal(text(fs.read("/out/folder/a", 9, 0)), "other");
  assert.deepEqual(folder.node_ops.readdir(folder), [".", "..", "a"]);
  folder.node_ops.unlink(folder, "a");
  root.node_ops.rmdir(root, "folder");
  assert.deepEqual(root.node_ops.readdir(root), [".", ".."]);
  tree.forget(tree.root);
  assert.ok(fs.destroyed > 0);
});

test("inputs cannot be written, and a failing read is an error number", () => {
  const fs = new FakeFs();
  const tree = new FileTree(fs, "/in", false, null);
  const failing = { size: 2 ** 34, readAhead: 65536, readInto: () => { throw new Error("the disk is gone"); } };
  tree.root.entries.set("file", new InputFile(failing));
  tree.root.entries.set("outside", new Directory({ find: () => { throw new Error("gone"); }, names: () => [] }));
  const node = fs.lookup("/in/file");
  assert.equal(node.node_ops.getattr(node).size, 2 ** 34);
  const errno = (number, work) => throwsErrno(fs, number, work);
  errno(29, () => fs.read("/in/file", 4, 2 ** 33));
  errno(29, () => fs.lookup("/in/outside/x"));
  errno(69, () => fs.write(node, Buffer.from("x"), 0));
  errno(69, () => node.node_ops.setattr(node, { size: 0 }));
  errno(69, () => fs.create("/in/new"));
});

test("long integers are exact in attributes, nearest elsewhere, and texts stay texts", () => {
  const json = '{"a":"9007199254740993 \\"bigint:9007199254740993\\"","offset":18446744073709551615,' +
    '"attributes":{"n":[-9223372036854775808,9007199254740991,12345678901234567890.5,' +
    '0.10000000149011612,-1.2345678901234567e-300,1e300]}}';
  assert.deepEqual(parseCoreText(json), {
    a: '9007199254740993 "bigint:9007199254740993"',
    offset: 2 ** 64,
    attributes: { n: [-(2n ** 63n), 9007199254740991, 12345678901234567890.5,
      0.10000000149011612, -1.2345678901234567e-300, 1e300] },
  });
  const hostile = parseCoreText('{"__proto__":{"x":1},"attributes":{"__proto__":"y","n":18446744073709551615}}');
  assert.ok(Object.hasOwn(hostile, "__proto__") && Object.hasOwn(hostile.attributes, "__proto__"));
});

test("names of the core become camelCase, those of the file stay", () => {
  const json = '{"file_size":1,"tensors":[{"block_type":"slm.q8_0","attributes":{"a_b":{"c_d":1}},"parts":[]}],' +
    '"checksums":{"weights_crc":"0"},"tokenizer":{"vocab_size":3,"special":{"bos_id":1}},"attributes":{"max_context":7}}';
  assert.deepEqual(parseCoreText(json), {
    fileSize: 1, tensors: [{ blockType: "slm.q8_0", attributes: { a_b: { c_d: 1 } }, parts: [] }],
    checksums: { weights_crc: "0" }, tokenizer: { vocabSize: 3, special: { bos_id: 1 } }, attributes: { max_context: 7 },
  });
});

test("the small helpers", () => {
  assert.equal(hasSimd(), true);
  assert.equal(typedArray("bf16", new Uint8Array(2)), null);
  assert.equal(typedArray("constructor", new Uint8Array(2)), null);
  assert.deepEqual(typedArray("i64", new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0])), new BigInt64Array([1n]));
  assert.equal(cosine(new Float32Array([1, 0]), new Float32Array([0, 2])), 0);
  assert.equal(cosine(new Float32Array([3, 4]), new Float32Array([3, 4])), 1);
  assert.equal(cosine(new Float32Array([0, 0]), new Float32Array([3, 4])), 0);
  const formats = [{ name: "zt", extensions: ["zt"] }, { name: "hf", extensions: [], folder: true }];
  assert.equal(outputName("a.b.zt", "zt", formats), "a.b.zt");
  assert.equal(outputName("a.bin", "zt", formats), "a.bin.zt");
  assert.equal(outputName("a.ZT", "hf", formats), "a");
  assert.equal(outputName("a", "zt0", formats), "a.zt0");
});
