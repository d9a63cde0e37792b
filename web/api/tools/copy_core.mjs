// SPDX-License-Identifier: Apache-2.0
// Copies the built core, the license and the notice into dist/, which the package ships. `tsc` builds the rest.
// Usage: node tools/copy_core.mjs [FOLDER with simd/ and plain/ [KIND...]]; a package needs both kinds, a test may do with simd.

import { cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const api = dirname(dirname(fileURLToPath(import.meta.url)));
const repository = resolve(api, "../..");
const [core = join(repository, "build/web/core"), ...kinds] = process.argv.slice(2);

for (const build of kinds.length ? kinds : ["simd", "plain"]) {
  mkdirSync(join(api, "dist/core", build), { recursive: true });
  for (const name of ["weighbridge.js", "weighbridge.wasm"]) {
    const from = join(core, build, name);
    if (!existsSync(from)) {
      console.error(`copy_core: there is no ${from}; build the WebAssembly core first`);
      process.exit(1);
    }
    cpSync(from, join(api, "dist/core", build, name));
  }
}
for (const name of ["LICENSE", "NOTICE"]) cpSync(join(repository, name), join(api, "dist", name));
