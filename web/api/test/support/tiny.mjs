// SPDX-License-Identifier: Apache-2.0
// Small files made by tests, and facts about this checkout.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A safetensors file of one f32 tensor. */
export function tinySafetensors(name, shape, values) {
  const header = JSON.stringify({ [name]: { dtype: "F32", shape, data_offsets: [0, 4 * values.length] } });
  const text = new TextEncoder().encode(header.padEnd(Math.ceil(header.length / 8) * 8));
  const file = new Uint8Array(8 + text.length + 4 * values.length);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  file.set(new Uint8Array(new Float32Array(values).buffer), 8 + text.length);
  return file;
}

export const kApi = fileURLToPath(new URL("../../", import.meta.url));
export const kRepository = fileURLToPath(new URL("../../../../", import.meta.url));

const has = (build) => existsSync(`${kApi}dist/core/${build}/weighbridge.wasm`);

/** False, or why tests of the real core are skipped. */
export const withoutCore = has("simd")
  ? false
  : "the WebAssembly core is not in dist/core: build it, then node tools/copy_core.mjs";
/** The same of the core for engines without vectors. */
export const withoutPlain = has("plain") ? false : "the core for engines without vectors was not built: WEB_KINDS left it out";

/** The native command, and false or why comparisons with it are skipped. */
export const kNative = process.env.WEIGHBRIDGE ?? `${kRepository}build/release/weighbridge`;
export const withoutNative =
  withoutCore || (existsSync(kNative) ? false : "there is no native command: set WEIGHBRIDGE to its path");

/** Real files, and false or why there are none. */
export const kData = process.env.WEIGHBRIDGE_TEST_DATA ?? "";
export const withoutData =
  withoutCore || (kData !== "" && existsSync(kData) ? false : "there are no real files: set WEIGHBRIDGE_TEST_DATA");
