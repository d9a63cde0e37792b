#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Times the npm package under Node against the native command, in one run and in turns: checking files, generating text,
// and opening files of very different sizes; and opening against netron, where its modules are at hand.
//
// usage: web.mjs [--ours WEIGHBRIDGE] [--rounds N] [--netron FOLDER] [--json FILE]
//
// Needs `make build` and `make web`; build/demo/minilm.safetensors and the checkpoint of WEIGHBRIDGE_TEST_DATA are used where
// they are, and what needs them is left out where not. A native check is timed as a process, and the time that
// `weighbridge --version` takes is subtracted; a native generation states its own rate. FOLDER holds netron's modules (view.js,
// safetensors.js): netron is no package of the npm registry, but its Python package brings them. Printed are medians.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const kRoot = fileURLToPath(new URL("../", import.meta.url));
const { values: options } = parseArgs({ options: {
  ours: { type: "string", default: process.env.WEIGHBRIDGE || join(kRoot, "build/release/weighbridge") },
  rounds: { type: "string", default: "7" }, netron: { type: "string" }, json: { type: "string" } } });
const kRounds = Number(options.rounds);
const kMiniLm = join(kRoot, "build/demo/minilm.safetensors");
const kLlama = join(process.env.WEIGHBRIDGE_TEST_DATA || join(kRoot, "../shared/data"), "llama");
const kSizes = { "100 MB": 1e8, "1 GB": 1e9, "10 GB": 1e10 };
const kTokens = 200;

const { Weighbridge } = await import(pathToFileURL(join(kRoot, "web/api/dist/index.js")).href).catch(() => {
  console.error("the npm package is not built: make web");
  process.exit(2);
});
const folder = mkdtempSync(join(tmpdir(), "weighbridge-bench-"));
const figures = {};

function native(args) {
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(options.ours, args, { encoding: "utf8", maxBuffer: 2 ** 26 });
  if (status !== 0) throw new Error(`weighbridge ${args.join(" ")}: status ${status}: ${stderr}`);
  return { milliseconds: performance.now() - began, stdout };
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
async function timed(work) {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Runs each contestant once a round, in turns, and returns the median of what each gives; the first round warms up. */
async function turns(contestants, rounds = kRounds) {
  const given = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, run] of Object.entries(contestants)) {
      const value = await run();
      if (round > 0) given[name].push(value);
    }
  }
  return Object.fromEntries(Object.entries(given).map(([name, values]) => [name, median(values)]));
}

const line = (...cells) => console.log(cells.map((cell, at) => (at === 0 ? cell.padEnd(34) : cell.padStart(15))).join(""));
const rate = (bytes, milliseconds) => `${(bytes / 1e6 / (milliseconds / 1000)).toFixed(0)} MB/s`;
const part = (value, of) => `${((100 * value) / of).toFixed(0)} %`;

function sparse(path, size) {
  const rows = Math.floor((size - 136) / 4096);
  const header = JSON.stringify({ w: { dtype: "F32", shape: [rows, 1024], data_offsets: [0, rows * 4096] } }).padEnd(128);
  const head = Buffer.alloc(136);
  head.writeBigUInt64LE(128n);
  head.write(header, 8);
  writeFileSync(path, head);
  truncateSync(path, 136 + rows * 4096);
  return path;
}

/** What is checked: label -> path. The digests are what costs; without them a safetensors is its header. */
function checked() {
  const slm = join(folder, "tinylm16m.slm");
  native(["slm", "fixture", "tinylm16m", "-o", slm, "--quiet"]);
  if (!existsSync(kMiniLm)) return { "tinylm16m.slm": slm };
  const made = Object.fromEntries([["sha256", "raw"], ["crc32c", "raw"], ["sha256", "zstd"]].map(([digest, encoding]) => {
    const path = join(folder, `${digest}-${encoding}.zt`);
    native(["convert", kMiniLm, path, "--digest", digest, "--encoding", encoding, "--quiet"]);
    return [`minilm.zt, ${encoding}, ${digest}`, path];
  }));
  return { ...made, "tinylm16m.slm": slm };
}

async function verify(wb) {
  line("verify", "package", "native, 1", "native, 2", "of native, 1", "of native, 2");
  for (const [label, path] of Object.entries(checked())) {
    const { start, ...times } = await turns({
      package: () => timed(() => wb.verify(path)),
      one: () => native(["verify", "--quiet", "--threads", "1", path]).milliseconds,
      two: () => native(["verify", "--quiet", "--threads", "2", path]).milliseconds,
      start: () => native(["--version"]).milliseconds,
    });
    const [one, two] = [times.one, times.two].map((time) => Math.max(0.1, time - start));
    const { size } = statSync(path);
    figures[`verify ${label}`] = { bytes: size, package: times.package, one, two };
    line(label, rate(size, times.package), rate(size, one), rate(size, two), part(one, times.package), part(two, times.package));
  }
}

/** A safetensors has no digest: its header is all there is to check, whatever its size, so times and no rate. */
async function verifyHeader(wb) {
  if (!existsSync(kMiniLm)) return;
  const times = await turns({ package: () => timed(() => wb.verify(kMiniLm)),
    native: () => native(["verify", "--quiet", kMiniLm]).milliseconds });
  figures["verify minilm.safetensors"] = times;
  line("minilm.safetensors, as a process", `${times.package.toFixed(1)} ms`, `${times.native.toFixed(1)} ms`);
}

async function generate(wb) {
  const [bin, tokenizer] = ["stories260K.bin", "tok512.bin"].map((name) => join(kLlama, name));
  if (!existsSync(bin)) return console.log("generate: stories260K.bin is not in WEIGHBRIDGE_TEST_DATA: left out");
  const slm = join(folder, "stories.slm");
  native(["convert", bin, slm, "--tokenizer", tokenizer, "--quiet"]);
  const model = await wb.open(slm);
  const generator = await model.generator();
  const texts = new Set();
  const ours = async () => {
    const pieces = generator.generate("Once upon a time", { maxTokens: kTokens, temperature: 0 });
    let step = await pieces.next();
    while (!step.done) step = await pieces.next();
    texts.add(step.value.text);
    return step.value.tokens_per_second;
  };
  const theirs = () => {
    const said = JSON.parse(native(["generate", slm, "--prompt", "Once upon a time", "--max-tokens", String(kTokens), "--threads", "1",
      "--json"]).stdout);
    texts.add(said.text);
    return said.tokens_per_second;
  };
  const rates = await turns({ package: ours, native: theirs }, 2 * kRounds);
  if (texts.size !== 1) throw new Error("the texts differ");
  figures.generate = rates;
  line(`generate ${kTokens} tokens, stories260K`, `${rates.package.toFixed(0)} /s`, `${rates.native.toFixed(0)} /s`, "",
    part(rates.package, rates.native));
  await generator.close();
  await model.close();
}

/** Opens a safetensors as netron's own reader does: its list of tensors; or null where netron is not at hand. */
async function netronOpener() {
  if (!options.netron) {
    console.log("netron: no package of the npm registry has that name; --netron FOLDER takes the modules of its Python package");
    return null;
  }
  const load = (name) => import(pathToFileURL(join(options.netron, `${name}.js`)).href);
  const [{ ModelFactory }, { FileStream }] = await Promise.all([load("safetensors"), load("node")]);
  return async (path) => {
    const { size, mtimeMs } = statSync(path);
    const context = { identifier: path, stream: new FileStream(path, 0, size, mtimeMs), peek: async () => null,
      set(type, value) { return Object.assign(this, { type, value }).type; } };
    const factory = new ModelFactory();
    if (!await factory.match(context)) throw new Error(`netron does not know ${path}`);
    const { modules } = await factory.open(context);
    if (modules.length === 0) throw new Error("netron shows nothing");
  };
}

async function opening(wb) {
  const netron = await netronOpener();
  const files = Object.entries(kSizes).map(([label, size]) => [label, sparse(join(folder, `${size}.safetensors`), size)]);
  if (existsSync(kMiniLm)) files.push(["minilm.safetensors, 104 tensors", kMiniLm]);
  line("open", "package", netron ? "netron" : "", netron ? "quicker" : "");
  for (const [label, path] of files) {
    const times = await turns({ package: () => timed(async () => (await wb.open(path, { checks: "structure" })).close()),
      ...(netron ? { netron: () => timed(() => netron(path)) } : {}) }, 3 * kRounds);
    figures[`open ${label}`] = times;
    line(label, ...Object.values(times).map((time) => `${time.toFixed(2)} ms`), netron ? `${(times.netron / times.package).toFixed(1)} times` : "");
  }
}

const wb = await Weighbridge.start();
try {
  console.log(`weighbridge ${wb.version.version}${wb.version.simd ? ", SIMD" : ""}, Node ${process.version}, medians of ${kRounds} rounds in turns`);
  await verify(wb);
  await verifyHeader(wb);
  await generate(wb);
  await opening(wb);
  if (options.json) writeFileSync(options.json, `${JSON.stringify(figures, null, 2)}\n`);
} finally {
  wb.close();
  rmSync(folder, { recursive: true, force: true });
}
