#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Times the npm package under Node against the native command, in turns in one run: checking files, generating text,
// and opening files of very different sizes. Also times opening against netron, if its modules are available.
//
// usage: web.mjs [--ours WEIGHBRIDGE] [--rounds N] [--netron FOLDER] [--json FILE]
//
// Needs `make build` and `make web`. Benchmarks that need build/demo/minilm.safetensors or the checkpoint of
// WEIGHBRIDGE_TEST_DATA are left out if it is missing. A native check is timed as a process, minus the time of
// `weighbridge --version`; a native generation reports its own rate. FOLDER holds netron's modules (view.js,
// safetensors.js): netron is not in the npm registry, but its Python package contains them. Rows are those of
// results.py.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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
// Targets of rows, as a fraction of the peer's time.
const kAsked = { "minilm.zt, raw, sha256": 4, "minilm.zt, raw, crc32c": 2.5, "minilm.zt, zstd, sha256": 2.5, generate: 4 };
const kOne = "the command, 1 thread", kTwo = "the command, 2 threads";

const { Weighbridge } = await import(pathToFileURL(join(kRoot, "web/api/dist/index.js")).href).catch(() => {
  console.error("the npm package is not built: make web");
  process.exit(2);
});
const folder = mkdtempSync(join(tmpdir(), "weighbridge-bench-"));
const results = { ...facts(), bench: "web", title: "In the browser", method: "", peers: {}, left_out: [], roofs: {}, rows: [] };

/** The facts of results.py about this machine and the native build. */
function facts() {
  const { status, stdout, stderr } = spawnSync("python3", [join(kRoot, "bench/results.py"), options.ours], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

function leaveOut(sentence) {
  results.left_out.push(sentence);
  console.log(`left out: ${sentence}`);
}

const rounded = (value) => Number(value.toPrecision(4));

/** One row in the shape of results.py; figures: {median, best} by contestant. */
function row(group, job, ours, peers, { unit = "ms", asked = {}, bytes } = {}) {
  const relation = (us, them) => rounded(unit === "ms" ? us / them : them / us);
  const told = { group, job, unit, ours: plain(ours), peers: {}, ...(bytes ? { bytes } : {}) };
  for (const [name, theirs] of Object.entries(peers)) {
    told.peers[name] = { ...plain(theirs), ratio: relation(ours.median, theirs.median), ratio_of_best: relation(ours.best, theirs.best),
      ...(asked[name] ? { asked: asked[name] } : {}) };
  }
  results.rows.push(told);
  console.log(JSON.stringify(told));
}
const plain = ({ median, best }) => ({ median: rounded(median), best: rounded(best) });

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

/** Runs each contestant once per round: the median and the best of its results; the first round is a warm-up. */
async function turns(contestants, rounds = kRounds, best = Math.min) {
  const given = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, run] of Object.entries(contestants)) {
      const value = await run();
      if (round > 0) given[name].push(value);
    }
  }
  return Object.fromEntries(Object.entries(given).map(([name, values]) => [name, { median: median(values), best: best(...values) }]));
}

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

/** The files to check: label -> path. Digests take the time; without them, checking a safetensors reads only its header. */
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
  const together = await Weighbridge.start({ workers: 2 });
  for (const [label, path] of Object.entries(checked())) {
    const shared = path.endsWith(".zt");
    const { start, ...times } = await turns({
      package: () => timed(() => wb.verify(path)),
      ...(shared ? { together: () => timed(() => together.verify(path)) } : {}),
      one: () => native(["verify", "--quiet", "--threads", "1", path]).milliseconds,
      two: () => native(["verify", "--quiet", "--threads", "2", path]).milliseconds,
      start: () => native(["--version"]).milliseconds,
    });
    const without = ({ median: middle, best }) => ({ median: Math.max(0.1, middle - start.median), best: Math.max(0.1, best - start.best) });
    const peers = { [kOne]: without(times.one), [kTwo]: without(times.two) };
    const facts = { asked: { [kOne]: kAsked[label] }, bytes: statSync(path).size };
    row("verify", `verify ${label}`, times.package, peers, facts);
    if (shared) row("verify", `verify ${label}, 2 workers`, times.together, peers, facts);
  }
  together.close();
}

/** A safetensors has no digest, so only its header is checked, whatever the file's size. */
async function verifyHeader(wb) {
  if (!existsSync(kMiniLm)) return leaveOut("files made of all-MiniLM-L6-v2: build/demo/minilm.safetensors is not there (tools/fetch-minilm.sh)");
  const times = await turns({ package: () => timed(() => wb.verify(kMiniLm)),
    native: () => native(["verify", "--quiet", kMiniLm]).milliseconds });
  return row("verify", "verify minilm.safetensors", times.package, { "the command, as a process": times.native });
}

async function generate(wb) {
  const [bin, tokenizer] = ["stories260K.bin", "tok512.bin"].map((name) => join(kLlama, name));
  if (!existsSync(bin)) return leaveOut("generation: stories260K.bin is not in the test data");
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
  const rates = await turns({ package: ours, native: theirs }, 2 * kRounds, Math.max);
  if (texts.size !== 1) throw new Error("the texts differ");
  row("generate", `generate ${kTokens} tokens, stories260K`, rates.package, { [kOne]: rates.native },
    { unit: "tokens/s", asked: { [kOne]: kAsked.generate } });
  await generator.close();
  await model.close();
  return undefined;
}

/** Opens a safetensors with netron's own reader: its list of tensors; null without netron. */
async function netronOpener() {
  if (!options.netron) {
    leaveOut("netron: its modules were not given (those of its Python package, in $NETRON)");
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
  for (const [label, path] of files) {
    const times = await turns({ package: () => timed(async () => (await wb.open(path, { checks: "structure" })).close()),
      ...(netron ? { netron: () => timed(() => netron(path)) } : {}) }, 3 * kRounds);
    row("open", `open ${label}`, times.package, netron ? { netron: times.netron } : {});
  }
}

const wb = await Weighbridge.start({ workers: 1 });
try {
  results.method = `npm package under Node ${process.version}${wb.version.simd ? ", with SIMD" : ""}, medians of ${kRounds} rounds`;
  await verify(wb);
  await verifyHeader(wb);
  await generate(wb);
  await opening(wb);
  if (options.json) {
    mkdirSync(dirname(options.json), { recursive: true });
    writeFileSync(options.json, `${JSON.stringify(results, null, 1)}\n`);
  }
} finally {
  wb.close();
  rmSync(folder, { recursive: true, force: true });
}
