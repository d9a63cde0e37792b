// SPDX-License-Identifier: Apache-2.0
// Tests the package as its users get it: packed, installed from the tarball into an empty folder, and used there.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { kApi, tinySafetensors, withoutCore, withoutPlain } from "./support/tiny.mjs";

const kProgram = `
  import { Weighbridge } from "weighbridge";
  const wb = await Weighbridge.start();
  const verdict = await wb.verify("tiny.safetensors");
  const model = await wb.open("tiny.safetensors");
  const output = await (await model.plan("zt")).convert();
  await output.save("tiny.zt");
  const { array } = await (await wb.open("tiny.zt")).read("w");
  console.log(JSON.stringify({ valid: verdict.valid, format: model.format, output: output.name, numbers: [...array] }));
`;

const kTypes = `
  import { Weighbridge, WeighbridgeError, type Verdict, type TensorInfo } from "weighbridge";
  const wb: Weighbridge = await Weighbridge.start();
  const verdict: Verdict = await wb.verify("tiny.safetensors", { onProgress: (done: number) => void done });
  const first: TensorInfo | undefined = (await wb.open({ name: "a", bytes: new Uint8Array() })).tensors[0];
  // @ts-expect-error: findings are read-only
  verdict.findings.push(first);
  throw WeighbridgeError.of("misuse", verdict.path);
`;

const kShipped = [
  "README.md",
  "package.json",
  "dist/index.js",
  "dist/index.d.ts",
  "dist/worker.js",
  "dist/node_worker.js",
  "dist/core/simd/weighbridge.wasm",
  ...(withoutPlain ? [] : ["dist/core/plain/weighbridge.js"]),
  "dist/LICENSE",
  "dist/NOTICE",
];

function run(folder, command, ...args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: folder, encoding: "utf8" });
  assert.equal(error, undefined);
  assert.equal(status, 0, `${command} ${args.join(" ")}\n${stdout}${stderr}`);
  return stdout;
}

test("the tarball installs into an empty folder and works there", { skip: withoutCore }, () => {
  const folder = mkdtempSync(join(tmpdir(), "weighbridge-package-"));
  try {
    const packed = run(kApi, "npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder);
    const [{ filename, files }] = JSON.parse(packed);
    const names = files.map(({ path }) => path);
    for (const name of kShipped) {
      assert.ok(names.includes(name), `${name} is not in the package`);
    }
    assert.deepEqual(names.filter((name) => /^(?:src|test|tools)\//.test(name)), []);
    writeFileSync(join(folder, "package.json"), '{"private":true,"type":"module"}');
    run(folder, "npm", "install", "--offline", "--no-audit", "--no-fund", `./${filename}`);
    const manifest = JSON.parse(readFileSync(join(folder, "node_modules/weighbridge/package.json"), "utf8"));
    assert.equal(manifest.dependencies, undefined);
    writeFileSync(join(folder, "tiny.safetensors"), tinySafetensors("w", [2], [1.5, -2]));
    writeFileSync(join(folder, "program.mjs"), kProgram);
    assert.deepEqual(JSON.parse(run(folder, process.execPath, "program.mjs")),
      { valid: true, format: "safetensors", output: "tiny.zt", numbers: [1.5, -2] });
    writeFileSync(join(folder, "program.ts"), kTypes);
    for (const compilerOptions of [{ lib: ["es2022", "dom"], types: [] }, { lib: ["es2022"], types: ["node"] }]) {
      const typeRoots = [join(kApi, "../node_modules/@types")];
      const common = { typeRoots, noEmit: true, strict: true, target: "es2022", module: "nodenext" };
      const project = { compilerOptions: { ...common, ...compilerOptions }, files: ["program.ts"] };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project));
      run(folder, join(kApi, "../node_modules/.bin/tsc"), "-p", "tsconfig.json");
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
