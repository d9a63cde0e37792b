// SPDX-License-Identifier: Apache-2.0
// Tests numbers beyond 32 bits: for valid files whose fields are changed to 2^32 more, 2^31 or 2^32 - 1, the core gives
// the findings of the native command, although its lengths have 32 bits.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { after, test } from "node:test";

import { Weighbridge } from "../dist/index.js";
import { kNative, kRepository, withoutCore, withoutNative } from "./support/tiny.mjs";

const folder = mkdtempSync(join(tmpdir(), "weighbridge-wrap-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const kHead = 200, kTail = 72, kFilesAFormat = 5, kMaxBytes = 6000;

/** Small files of each format's corpus. */
function* bases() {
  for (const format of readdirSync(join(kRepository, "corpus"), { withFileTypes: true })) {
    if (!format.isDirectory()) continue;
    let taken = 0;
    for (const file of readdirSync(join(format.parentPath ?? format.path, format.name), { withFileTypes: true })) {
      if (!file.isFile() || [".json", ".md", ".txt"].includes(extname(file.name))) continue;
      const bytes = readFileSync(join(kRepository, "corpus", format.name, file.name));
      if (bytes.length <= 60 || bytes.length >= kMaxBytes) continue;
      yield { bytes, extension: extname(file.name) };
      if (++taken === kFilesAFormat) break;
    }
  }
}

function* mutations({ bytes, extension }) {
  const places = new Set();
  for (let at = 0; at + 8 <= Math.min(bytes.length, kHead + 8); at += 4) places.add(at);
  for (let at = Math.max(0, bytes.length - kTail); at + 8 <= bytes.length; at += 4) places.add(at);
  for (const at of places) {
    const value = bytes.readBigUInt64LE(at), high = value & ~0xffffffffn;
    for (const other of [BigInt.asUintN(64, value + 2n ** 32n), high | 0xffffffffn, high | 0x80000000n]) {
      const copy = Buffer.from(bytes);
      copy.writeBigUInt64LE(other, at);
      yield { bytes: copy, extension };
    }
  }
}

const judged = (verdict) => verdict.findings.map(({ rule, offset }) => `${rule} ${offset}`);

test("fields that wrap at 32 bits are judged alike", { skip: withoutCore || withoutNative }, async () => {
  const files = [...bases()].flatMap((base) => [...mutations(base)]);
  assert.ok(files.length > 5000, `${files.length} files`);
  const paths = files.map(({ bytes, extension }, i) => {
    const path = join(folder, `${i}${extension}`);
    writeFileSync(path, bytes);
    return path;
  });
  const wb = await Weighbridge.start();
  try {
    for (let first = 0; first < files.length; first += 500) {
      const some = paths.slice(first, first + 500);
      const { stdout } = spawnSync(kNative, ["verify", "--json", ...some], { encoding: "utf8", maxBuffer: 2 ** 28 });
      const expected = JSON.parse(stdout).files;
      for (const [i, path] of some.entries())
        assert.deepEqual(judged(await wb.verify(path)), judged(expected[i]), `mutation ${first + i}`);
    }
  } finally {
    wb.close();
  }
});
