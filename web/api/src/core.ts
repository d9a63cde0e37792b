// SPDX-License-Identifier: Apache-2.0
// TypeScript declarations of the WebAssembly core, and the choice between its two builds. docs/schemas describes the
// JSON texts that it returns; an object with "error" means that the call failed. core_files.ts has where it lies.

import type { CoreOptions } from "./core_options.js";
import type { Share } from "./protocol.js";

/** A node of Emscripten's file system; `entry` is ours (files.ts). */
export interface FsNode<Entry = unknown> {
  readonly id: number;
  name: string;
  mode: number;
  parent: FsNode<Entry>;
  entry: Entry;
  node_ops: object;
  stream_ops: object;
}

/** The part of Emscripten's FS that we use. */
export interface EmscriptenFs {
  readonly ErrnoError: new (errno: number) => Error & { readonly errno: number };
  createNode(parent: object | null, name: string, mode: number, rdev: number): FsNode;
  destroyNode(node: object): void;
  mkdir(path: string): unknown;
  mount(type: { mount(mount: object): object }, options: object, mountpoint: string): unknown;
}

export interface Core {
  readonly FS: EmscriptenFs;
  readonly HEAPU8: Uint8Array;
  /** Called while a job runs; returning false stops the job. */
  onProgress?: (done: number, total: number) => boolean;

  version(): string;
  formats(): string;
  open(path: string, options: CoreOptions): string;
  adapt(model: number, paths: readonly string[]): string;
  logical(model: number, dtype: string): string;
  close(model: number): void;
  /** `path` is copied into the result; so is `path` in `hash`, `plan` and `execute`. */
  inspect(model: number, path: string): string;
  verify(path: string, options: CoreOptions, share: Share): string;
  hash(model: number, path: string, withNames: boolean): string;
  zt_hash(model: number, path: string): string;
  statistics(model: number, tensor: number): string;
  histogram(model: number, tensor: number, bins: number): string;
  rows(model: number, tensor: number, first: number, count: number): Float32Array | string;
  read(model: number, tensor: number, dtype: string): { bytes: Uint8Array; dtype: string; shape: number[] } | string;
  extract(model: number, tensor: number, path: string): string;
  /** The two names are copied into the result; so is `path` in `explain`. */
  diff(a: number, nameA: string, b: number, nameB: string, options: CoreOptions): string;
  differenceMap(
    a: number, tensorA: string, b: number, tensorB: string, high: number, wide: number, options: CoreOptions,
  ): string;
  explain(path: string, offset: number, length: number, options: CoreOptions): string;
  plan(model: number, path: string, format: string, options: CoreOptions): string;
  execute(plan: number, path: string, output: string): string;
  closePlan(plan: number): void;
  planEdit(path: string, output: string, options: CoreOptions): string;
  edit(path: string, output: string, options: CoreOptions): string;
  tokenize(model: number, text: string, special: boolean): string;
  embedder(model: number, options: object): string;
  embed(embedder: number, texts: readonly string[], role: string): Float32Array | string;
  closeEmbedder(embedder: number): void;
  generator(model: number, options: CoreOptions): string;
  generate(generator: number, prompt: string, options: CoreOptions): string;
  next(generation: number, milliseconds: number): string;
  closeGeneration(generation: number): void;
  closeGenerator(generator: number): void;
  /** Paths; "" for a record that is absent. */
  admission(
    artifact: string,
    evidence: { manifest: string; receipt: string; ledger: string; registry: string },
    adapters: readonly string[],
  ): string;
}

/** What Emscripten's module exports. */
export type CoreFactory = (options: {
  wasmBinary: Uint8Array;
  print: (line: string) => void;
  printErr: (line: string) => void;
}) => Promise<Core>;

/** `(func (result v128) (i8x16.popcnt (i8x16.splat (i32.const 0))))`: valid only where the engine has SIMD. */
const kSimdModule = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);

export function hasSimd(): boolean {
  return WebAssembly.validate(kSimdModule);
}

/** The core's console output is dropped: every failure is returned as a text. */
export async function startCore(factory: CoreFactory, wasmBinary: Uint8Array): Promise<Core> {
  const ignore = () => {};
  return factory({ wasmBinary, print: ignore, printErr: ignore });
}
