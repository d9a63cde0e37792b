// SPDX-License-Identifier: Apache-2.0
// Tests the WebAssembly core against the native command: the same findings over the whole corpus, the same digests,
// converted bytes and tokens, and embeddings equally close to the reference.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";

import { Weighbridge } from "../dist/index.js";
import { parseCoreText } from "../dist/json.js";
import { kData, kNative, kRepository, withoutCore, withoutData, withoutNative } from "./support/tiny.mjs";

const folder = mkdtempSync(join(tmpdir(), "weighbridge-native-"));
let wb;
before(async () => {
  if (!withoutCore) wb = await Weighbridge.start();
});
after(() => {
  wb?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What the command prints, with the names of the package. */
function native(...args) {
  const { stdout, stderr, error } = spawnSync(kNative, args, { encoding: "utf8", maxBuffer: 2 ** 28 });
  assert.equal(error, undefined);
  try {
    return parseCoreText(stdout);
  } catch {
    throw new Error(`${args.join(" ")}: ${stderr || stdout}`);
  }
}

function filesBelow(path) {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(path, entry.name)) : [join(path, entry.name)]);
}

test("the whole corpus is judged alike", { skip: withoutNative }, async () => {
  const files = filesBelow(join(kRepository, "corpus"));
  assert.ok(files.length > 500, `${files.length} files`);
  const verdicts = native("verify", "--json", ...files).files;
  assert.equal(verdicts.length, files.length);
  for (const [at, file] of files.entries()) {
    const { path, ...expected } = verdicts[at];
    assert.equal(path, file);
    const { path: name, ...found } = await wb.verify(file).catch((error) => {
      throw new Error(`${file}: ${error.message}`, { cause: error });
    });
    // The command was given all parts of a model at once; each is alone here.
    found.findings = found.findings.filter(({ rule }) => !rule.endsWith("-alone"));
    expected.findings = expected.findings.filter(({ rule }) => !rule.endsWith("-alone"));
    // A finding about a sidecar or a shard names it as it was opened: here without its folder.
    for (const finding of expected.findings) if (finding.file) finding.file = basename(finding.file);
    assert.deepEqual(found, expected, file);
    assert.ok(file.endsWith(`/${name}`));
  }
});

const kConversions = [
  ["safetensors/test.safetensors", "zt", "zt", { encoding: "zstd" }, ["--encoding", "zstd"]],
  ["safetensors/test.safetensors", "zt", "zt", { digest: "sha256" }, ["--digest", "sha256"]],
  ["safetensors/model.safetensors", "zt0", "zt0", {}, []],
  ["safetensors/test.safetensors", "zt2", "zt", { digest: "sha256" }, ["--digest", "sha256"]],
  ["safetensors/test.safetensors", "zt2", "zt", { encoding: "zstd" }, ["--encoding", "zstd"]],
  ["tiny_bert/model.safetensors", "stb", "stb", { allow: ["name", "attribute"] }, ["--allow", "name,attribute"]],
  ["tiny_bert/model.safetensors", "zt", "zt", { cast: "f16" }, ["--cast", "f16"]],
  ["tiny_bert/model.safetensors", "safetensors", "safetensors", {}, []],
  ["tiny_bert/model.safetensors", "zt", "zt",
    { only: ["embeddings.*", "*.bias"], without: ["*LayerNorm*"], set: { k: "v" },
      rename: { "embeddings.word_embeddings.weight": "words" } },
    ["--only", "embeddings.*", "--only", "*.bias", "--without", "*LayerNorm*", "--set", "k=v",
      "--rename", "embeddings.word_embeddings.weight=words"]],
  ["llama/stories260K.bin", "slm", "slm", {}, []],
  ["llama/stories260K.bin", "slm", "slm", { quantize: "q8_0" }, ["--quantize", "q8_0"]],
];

test("digests, plans and converted bytes are the same", { skip: withoutNative || withoutData }, async () => {
  for (const [at, [file, to, extension, options, flags]] of kConversions.entries()) {
    const path = join(kData, file);
    const llama = file.startsWith("llama");
    const tokenizer = llama ? join(kData, "llama/tok512.bin") : undefined;
    const output = join(folder, `${at}.${extension}`);
    const words = ["--to", to, ...flags, ...(llama ? ["--tokenizer", tokenizer] : [])];
    const expected = native("convert", path, output, "--json", "--dry-run", ...words);
    native("convert", path, output, "--json", ...words);
    const model = await wb.open(path, { tokenizer });
    const plan = await model.plan(to, options);
    for (const key of ["to", "possible", "blockers", "losses", "changes", "tensors", "payloadSize", "outputSize"]) {
      assert.deepEqual(plan.details[key], expected[key], `${file}: ${key}`);
    }
    assert.equal(plan.possible, true, file);
    const converted = await plan.convert();
    assert.ok(readFileSync(output).equals(await converted.bytes()), `${file} as ${to}`);
    if (!llama) assert.equal((await model.hash()).digest, native("hash", "--json", path).files[0].digest);
    assert.equal((await wb.verify({ name: converted.name, bytes: await converted.bytes() })).valid, true);
    await model.close();
  }
});

test("the digest that the text of zTensor 2 defines is the command's", { skip: withoutNative }, async () => {
  const path = join(kRepository, "corpus/zt2/valid-digests.zt");
  const model = await wb.open(path);
  const found = await model.ztHash();
  // Made from the text with another encoder.
  assert.equal(found.digest, "bfd2d0e7f8fc547c5da0f8def6f66e7b7a74205cf87188b353d629f8b5da2cad");
  assert.deepEqual([found.of, found.digest], ["zt-content", native("hash", "--zt", "--json", path).files[0].digest]);
  const without = await wb.open(join(kRepository, "corpus/zt2/valid-one.zt"));
  await assert.rejects(without.ztHash(), (error) => error.kind === "misuse");
  await Promise.all([model.close(), without.close()]);
});

test("a folder given as files is the folder given by its path", { skip: withoutData }, async () => {
  const root = join(kData, "tiny_bert");
  const files = filesBelow(root).map((path) => ({ name: path.slice(root.length + 1), bytes: readFileSync(path) }));
  const byPath = await wb.open(root);
  const byFiles = await wb.open({ name: "tiny_bert", files });
  assert.equal(byPath.format, "hf");
  assert.deepEqual(byFiles.inspection, { ...byPath.inspection, fileSize: byFiles.fileSize });
});

test("embeddings are the reference's", { skip: withoutNative || withoutData }, async () => {
  const root = join(kData, "tiny_bert");
  const model = await wb.open(root);
  const embedder = await model.embedder();
  const texts = ["hello world", "good morning", "a longer text, with words that are in no vocabulary"];
  const vectors = await embedder.embed(texts);
  assert.equal(vectors.length, 3);
  const { stdout } = spawnSync(kNative, ["embed", root, ...texts], { encoding: "utf8" });
  const lines = stdout.trim().split("\n").map((line) => JSON.parse(line).embedding);
  for (const [at, line] of lines.entries()) {
    assert.equal(line.length, embedder.dimension);
    line.forEach((number, place) => assert.ok(Math.abs(number - vectors[at][place]) < 2e-6, `${texts[at]}: ${place}`));
  }
  assert.ok(Math.abs((await embedder.similarity(texts[0], texts[0])) - 1) < 1e-6);
  // The reference has token ids; a text of whole words of the vocabulary gives them again.
  const { cases } = JSON.parse(readFileSync(join(root, "golden.json"), "utf8"));
  const vocabulary = readFileSync(join(root, "vocab.txt"), "utf8").split("\n");
  const text = cases[0].ids.slice(1, -1).map((id) => vocabulary[id]).join(" ");
  assert.deepEqual((await model.tokenize(text)).ids, cases[0].ids);
  const said = spawnSync(kNative, ["tokenize", root, "--json", ...texts], { encoding: "utf8" });
  const { inputs } = parseCoreText(said.stdout);
  for (const [at, each] of texts.entries()) assert.deepEqual(await model.tokenize(each), inputs[at]);
  const [vector] = await embedder.embed([text]);
  cases[0].normalised.forEach((number, at) => assert.ok(Math.abs(number - vector[at]) < 1e-5, `golden: ${at}`));
});

test("prompts and settings of a folder are followed", { skip: withoutNative || withoutData }, async () => {
  const root = join(kData, "tiny_bert");
  const own = filesBelow(root).map((path) => ({ name: path.slice(root.length + 1), bytes: readFileSync(path) }));
  const json = (name, value) => ({ name, bytes: new TextEncoder().encode(JSON.stringify(value)) });
  const config = JSON.parse(readFileSync(join(root, "config.json"), "utf8"));
  const folder = (more) => ({ name: "m", files: [...own.filter(({ name }) => more.every((file) => file.name !== name)), ...more] });
  const plain = await (await wb.open(root)).embedder();
  const prompts = { prompts: { query: "good ", document: "morning " }, default_prompt_name: "query" };
  const model = await wb.open(folder([json("config_sentence_transformers.json", prompts)]));
  const embedder = await model.embedder();
  const wanted = await plain.embed(["good world", "morning world", "world"]);
  assert.deepEqual((await embedder.embed(["world"]))[0], wanted[0]);
  assert.deepEqual((await embedder.embed(["world"], { role: "query" }))[0], wanted[0]);
  assert.deepEqual((await embedder.embed(["world"], { role: "document" }))[0], wanted[1]);
  assert.deepEqual((await (await model.embedder({ prompt: "" })).embed(["world"]))[0], wanted[2]);
  assert.deepEqual((await (await model.embedder({ promptName: "document" })).embed(["world"]))[0], wanted[1]);
  const odd = await wb.open(folder([json("config.json", { ...config, position_embedding_type: "relative_key" })]));
  await assert.rejects(odd.embedder(), (error) => error.kind === "unsupported" && /position_embedding_type/.test(error.message));
  const passed = await odd.embedder({ ignoreSetting: ["position_embedding_type"] });
  assert.match(passed.notes.join(), /position_embedding_type/);
  assert.deepEqual((await passed.embed(["world"]))[0], wanted[2]);
});

test("greedy generation is the reference's", { skip: withoutData }, async () => {
  const model = await wb.open(join(kData, "llama/stories260K.bin"), { tokenizer: join(kData, "llama/tok512.bin") });
  const plan = await model.plan("slm");
  const slm = await wb.open({ name: "stories.slm", bytes: await (await plan.convert()).bytes() });
  const golden = JSON.parse(readFileSync(join(kData, "llama/stories260K_golden.json"), "utf8"));
  const generator = await slm.generator();
  const pieces = [];
  const stream = generator.generate("", { maxTokens: 64 });
  let step = await stream.next();
  for (; !step.done; step = await stream.next()) pieces.push(step.value);
  const ids = step.value.tokens;
  assert.deepEqual(ids, golden.greedy_ids_first_64.slice(0, ids.length));
  assert.equal(ids.length, 64);
  assert.equal(pieces.map(({ text }) => text).join(""), step.value.text);
  assert.ok(golden.text_first_200_chars.startsWith(step.value.text.trim()));
  assert.equal(pieces.at(-1).tokens, 64);
  const stopped = await generator.complete("Once upon a time", { stop: ["Lily"], maxTokens: 100 });
  assert.equal(stopped.stopped, "text");
  assert.ok(!stopped.text.includes("Lily"));
  for (const [name, least] of [["maxTokens", "max-tokens is a whole number from 0"], ["topK", "top-k is a whole number from 1"],
    ["seed", "seed is a whole number from 0"]])
    for (const number of [-1, 0.5, NaN])
      await assert.rejects(generator.complete("Tom", { [name]: number }), (error) =>
        error.kind === "misuse" && error.message.startsWith(least));
  const drawn = { temperature: 0.9, topP: 0.9, seed: 7, maxTokens: 40 };
  assert.equal((await generator.complete("Tom", drawn)).text, (await generator.complete("Tom", drawn)).text);
});
