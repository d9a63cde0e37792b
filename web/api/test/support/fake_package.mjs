// SPDX-License-Identifier: Apache-2.0
// The package's folder with the fake core in it, for tests that need real workers and no WebAssembly.

import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
const fake = fileURLToPath(new URL("fake_core.mjs", import.meta.url));

/** A folder, and its URL; the test removes it. */
export function fakePackage() {
  const folder = mkdtempSync(join(tmpdir(), "weighbridge-api-"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  for (const name of readdirSync(dist)) if (name.endsWith(".js")) cpSync(join(dist, name), join(folder, name));
  mkdirSync(join(folder, "core/plain"), { recursive: true });
  cpSync(fake, join(folder, "core/plain/weighbridge.js"));
  writeFileSync(join(folder, "core/plain/weighbridge.wasm"), new Uint8Array(8));
  return {
    base: pathToFileURL(`${folder}/`),
    write: (name, content) => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
