// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the page: facts about this checkout and machine, the native command to compare with, and small
// files made byte by byte. Independent of the page.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const kRoot = fileURLToPath(new URL("../../../", import.meta.url));
export const kSite = join(kRoot, "build/web/site");
/** The browser of this run: "chromium", or "firefox" with WEIGHBRIDGE_BROWSER=firefox. */
export const kBrowser = process.env.WEIGHBRIDGE_BROWSER || "chromium";
const kBrowsers = {
  chromium: { name: "Chromium", path: process.env.WEIGHBRIDGE_CHROMIUM || "/usr/bin/chromium", get: "apt-get install chromium" },
  // Ubuntu's package firefox starts a snap, which cannot read the profile that a test makes for it.
  firefox: { name: "Firefox", path: process.env.WEIGHBRIDGE_FIREFOX || "/usr/bin/firefox-esr",
    get: "apt-get install firefox-esr on Debian; elsewhere set WEIGHBRIDGE_FIREFOX to the firefox of Mozilla's archive, not of a snap" },
};
const theBrowser = kBrowsers[kBrowser];
if (theBrowser === undefined) throw new Error(`WEIGHBRIDGE_BROWSER is ${kBrowser}: it must be ${Object.keys(kBrowsers).join(" or ")}`);
export const kExecutable = theBrowser.path;
export const kNative = process.env.WEIGHBRIDGE || join(kRoot, "build/release/weighbridge");
export const kData = process.env.WEIGHBRIDGE_TEST_DATA || join(kRoot, "../shared/data");
export const kMiniLm = join(kRoot, "build/demo/minilm.safetensors");
export const kMiniLmVocabulary = join(kRoot, "build/demo/all-MiniLM-L6-v2/vocab.txt");

const missing = (path, sentence) => (existsSync(path) ? false : sentence);

/** Each is false, or the reason for skipping a test. */
export const withoutPage = missing(kExecutable, `there is no ${theBrowser.name} at ${kExecutable}: ${theBrowser.get}`) ||
  missing(join(kSite, "index.html"), "the page is not built: make web");
export const withoutNative = withoutPage ||
  missing(kNative, "there is no native command to compare with: make build, or set WEIGHBRIDGE to its path");
export const withoutData = withoutNative ||
  missing(kData, "there are no real files: WEIGHBRIDGE_TEST_DATA names their folder");
export const withoutMiniLm = withoutNative || missing(kMiniLm, "minilm.safetensors is missing: tools/fetch-minilm.sh") ||
  missing(kMiniLmVocabulary, "the vocabulary of MiniLM is missing: tools/fetch-minilm.sh");

const folder = mkdtempSync(join(tmpdir(), "weighbridge-page-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A path for a file of this test file; removed at its end. */
export const scratch = (name) => join(folder, name);

/** Runs the command; an unexpected exit status fails the test. */
export function native(args, { statuses = [0], cwd } = {}) {
  const { status, stdout, stderr, error } = spawnSync(kNative, args, { encoding: "utf8", maxBuffer: 2 ** 28, cwd });
  assert.equal(error, undefined);
  assert.ok(statuses.includes(status), `weighbridge ${args.join(" ")}: status ${status}\n${stderr}`);
  return stdout;
}

export const nativeJson = (args, options) => JSON.parse(native([...args, "--json"], options));

/** What `inspect` says of a file. */
export const nativeInspection = (path, ...flags) => nativeJson(["inspect", path, ...flags]).files[0];

/** The command's results for files, in order, including broken ones. */
export const nativeVerdicts = (paths) => nativeJson(["verify", ...paths], { statuses: [0, 1, 3] }).files;

export function filesBelow(path) {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(path, entry.name)) : [join(path, entry.name)]).sort();
}

/** A safetensors file; tensors: name -> { dtype, shape, bytes }. */
export function safetensors(tensors, metadata) {
  const header = metadata ? { __metadata__: metadata } : {};
  const payload = [];
  let at = 0;
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
    payload.push(bytes);
  }
  return Buffer.concat([head(header), ...payload]);
}

/** The same with one f32 tensor of zeros that fills a sparse file of the given size. */
export function sparseSafetensors(path, size) {
  const room = 128;
  const elements = Math.floor((size - room - 8) / 4);
  const header = head({ weight: { dtype: "F32", shape: [elements / 1024, 1024], data_offsets: [0, elements * 4] } }, room);
  assert.equal(elements % 1024, 0, "a size that is a header and whole rows");
  writeFileSync(path, header);
  truncateSync(path, header.length + elements * 4);
  return path;
}

function head(header, room = 0) {
  const text = JSON.stringify(header);
  const json = Buffer.from(text);
  const length = Math.max(room, Math.ceil(json.length / 8) * 8);
  const bytes = Buffer.alloc(8 + length, " ");
  bytes.writeBigUInt64LE(BigInt(length));
  json.copy(bytes, 8);
  return bytes;
}

/** FP8 codes of 1, 2, 0.5 and -1 with one scale, 0.5, or with one for each block of a size that nothing states; and a norm. */
export const quantized = ({ codes = [0x38, 0x40, 0x30, 0xb8], blocks = false } = {}) => safetensors({
  ...(blocks ? { "mlp.weight": { dtype: "F8_E4M3", shape: [3, 4], bytes: Buffer.alloc(12, 0x38) },
    "mlp.weight_scale_inv": { dtype: "F32", shape: [2, 2], bytes: floats([1, 2, 3, 4]) } }
    : { "mlp.weight": { dtype: "F8_E4M3", shape: [2, 2], bytes: Buffer.from(codes) },
      "mlp.weight_scale": { dtype: "F32", shape: [], bytes: floats([0.5]) } }),
  "norm.weight": { dtype: "F32", shape: [1], bytes: floats([7]) } });

export const floats = (values) => Buffer.from(Float32Array.from(values).buffer);

/** Bytes that do not compress, the same each time. */
export function noise(length) {
  const words = new Uint32Array(Math.ceil(length / 4));
  let state = 1;
  for (let at = 0; at < words.length; at += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[at] = state;
  }
  return Buffer.from(words.buffer, 0, length);
}
