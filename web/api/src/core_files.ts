// SPDX-License-Identifier: Apache-2.0
// Where the two files of the core lie. Bundlers copy what they find in this very form, `new URL(text, import.meta.url)`.

export interface CoreFiles {
  readonly script: URL;
  readonly binary: URL;
}

/** In the package's folder at `base`; null: beside this module, or where a bundler has put them. */
export function coreFiles(base: string | null, simd: boolean): CoreFiles {
  if (base !== null) {
    const folder = new URL(simd ? "core/simd/" : "core/plain/", base);
    return { script: new URL("weighbridge.js", folder), binary: new URL("weighbridge.wasm", folder) };
  }
  if (simd) {
    return {
      script: new URL("./core/simd/weighbridge.js", import.meta.url),
      binary: new URL("./core/simd/weighbridge.wasm", import.meta.url),
    };
  }
  return {
    script: new URL("./core/plain/weighbridge.js", import.meta.url),
    binary: new URL("./core/plain/weighbridge.wasm", import.meta.url),
  };
}
