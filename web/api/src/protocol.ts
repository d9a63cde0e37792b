// SPDX-License-Identifier: Apache-2.0
// The messages to and from the worker: one table of operations, and four kinds of replies. Handles are the core's
// numbers and are valid only in the worker that returned them.

import type { CoreOptions } from "./core_options.js";
import type { Failure } from "./errors.js";
import type * as types from "./types.js";

/** The least time between two progress reports, in milliseconds. */
export const kReportEvery = 50;

/** Bytes of a file, in a form that can be sent to a worker. */
export type FileBytes =
  | { readonly kind: "blob"; readonly blob: Blob }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "path"; readonly path: string };

/** A file or a folder for the worker to mount. Names have been checked: relative, without empty parts, `.` or `..`. */
export type MountedSource =
  | { readonly name: string; readonly file: FileBytes }
  | { readonly name: string; readonly files: readonly { readonly path: string; readonly file: FileBytes }[] };

/** A source and the files of the same folder. */
export interface Beside {
  readonly source: MountedSource;
  readonly beside: readonly MountedSource[];
}

export interface OpenArguments extends Beside {
  readonly options: CoreOptions;
  readonly tokenizer: MountedSource | null;
}

export interface OpenedModel {
  readonly model: number;
  readonly inspection: types.Inspection;
}

/** One of the workers that verify a file together, as Share of the library. */
export interface Share {
  readonly index: number;
  readonly of: number;
}

/**
 * What one of them found, into how many shares the payload was divided, and which of the findings are of payload: from
 * the first number to before the second.
 */
export interface CheckedShare {
  readonly verdict: types.Verdict;
  readonly shares: number;
  /** The same for all that read the same index. */
  readonly identity: string;
  readonly payload: readonly [number, number];
}

/** A written file: its bytes in order. `path` is relative to the folder, or the file's name. */
export interface WrittenFile {
  readonly path: string;
  readonly size: number;
  readonly chunks: readonly (Uint8Array | Blob)[];
}

/** What one call wrote: the files of a folder, or a file followed by its sidecar files. */
export interface WrittenOutput {
  readonly name: string;
  readonly folder: boolean;
  readonly files: readonly WrittenFile[];
}

export interface PlanArguments {
  readonly model: number;
  readonly format: string;
  readonly options: CoreOptions;
}

export interface EditArguments extends Beside {
  readonly options: CoreOptions;
  readonly name: string;
}

export interface EmbedderArguments {
  readonly model: number;
  readonly options: CoreOptions;
  readonly vocabulary: MountedSource | null;
}

export interface GenerateArguments {
  readonly generator: number;
  readonly prompt: string;
  readonly options: CoreOptions;
}

type TensorArguments = { readonly model: number; readonly tensor: number };

/** For each operation: the arguments and the result. */
export interface Operations {
  start: { args: { readonly base: string | null; readonly simd: boolean }; result: types.Version };
  formats: { args: null; result: readonly types.FormatInfo[] };
  memory: { args: null; result: number };
  open: { args: OpenArguments; result: OpenedModel };
  adapt: { args: { readonly model: number; readonly adapters: readonly MountedSource[] }; result: OpenedModel };
  logical: { args: { readonly model: number; readonly dtype: string }; result: OpenedModel };
  close: { args: { readonly model: number }; result: null };
  verify: { args: Omit<OpenArguments, "tokenizer"> & { readonly share: Share }; result: CheckedShare };
  hash: { args: { readonly model: number; readonly names: boolean }; result: types.Hash };
  ztHash: { args: { readonly model: number }; result: types.Hash };
  statistics: { args: TensorArguments; result: types.Statistics };
  histogram: { args: TensorArguments & { readonly bins: number }; result: types.Histogram };
  rows: { args: TensorArguments & { readonly first: number; readonly count: number }; result: Float32Array };
  read: {
    args: TensorArguments & { readonly dtype: string };
    result: { readonly dtype: string; readonly shape: readonly number[]; readonly bytes: Uint8Array };
  };
  extract: { args: TensorArguments & { readonly name: string }; result: WrittenOutput };
  diff: {
    args: { readonly a: number; readonly b: number; readonly options: CoreOptions };
    result: types.Comparison;
  };
  differenceMap: {
    args: {
      readonly a: number;
      readonly b: number;
      readonly options: CoreOptions;
      /** The tensors. */
      readonly tensors: { readonly a: string; readonly b: string };
      readonly grid: { readonly high: number; readonly wide: number };
    };
    result: types.DifferenceMap;
  };
  explain: {
    args: Beside & { readonly options: CoreOptions; readonly offset: number; readonly length: number };
    result: types.Explanation;
  };
  plan: { args: PlanArguments; result: { readonly plan: number; readonly details: types.PlanDetails } };
  execute: {
    args: { readonly plan: number; readonly name: string };
    result: WrittenOutput & { readonly details: types.PlanDetails };
  };
  closePlan: { args: { readonly plan: number }; result: null };
  planEdit: { args: EditArguments; result: types.EditDetails };
  edit: { args: EditArguments; result: WrittenOutput & { readonly details: types.EditDetails } };
  tokenize: {
    args: { readonly model: number; readonly text: string; readonly special: boolean };
    result: types.Tokens;
  };
  embedder: {
    args: EmbedderArguments;
    result: {
      readonly embedder: number; readonly dimension: number; readonly maxLength: number; readonly notes: readonly string[];
    };
  };
  embed: {
    args: { readonly embedder: number; readonly texts: readonly string[]; readonly role: string };
    result: Float32Array;
  };
  closeEmbedder: { args: { readonly embedder: number }; result: null };
  generator: {
    args: { readonly model: number; readonly options: CoreOptions };
    result: { readonly generator: number; readonly vocabulary: number; readonly context: number };
  };
  generate: { args: GenerateArguments; result: types.Generated };
  closeGenerator: { args: { readonly generator: number }; result: null };
  admission: {
    args: {
      readonly artifact: MountedSource;
      readonly manifest: MountedSource | null;
      readonly receipt: MountedSource | null;
      readonly ledger: MountedSource | null;
      readonly registry: MountedSource | null;
      readonly adapters: readonly MountedSource[];
    };
    result: types.Admission;
  };
}

export type Operation = keyof Operations;
export type Arguments<Op extends Operation> = Operations[Op]["args"];
export type Result<Op extends Operation> = Operations[Op]["result"];

/** To the worker. `stop` ends the generation that the call `id` began. */
export type Request =
  | { readonly id: number; readonly op: Operation; readonly args: unknown }
  | { readonly id: number; readonly op: "stop" };

/**
 * From the worker. `fatal` asks for a new worker: after a trap or a failed allocation this one is no longer reliable.
 */
export type Reply =
  | { readonly id: number; readonly kind: "done"; readonly value: unknown }
  | { readonly id: number; readonly kind: "failed"; readonly failure: Failure; readonly fatal: boolean }
  | { readonly id: number; readonly kind: "progress"; readonly done: number; readonly total: number }
  | { readonly id: number; readonly kind: "piece"; readonly piece: types.Piece };
