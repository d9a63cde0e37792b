// SPDX-License-Identifier: Apache-2.0
// The package's types. Here are the results, options.ts has sources and options. Objects that the core returns as JSON are
// those of docs/schemas, with their names in camelCase. Classes have their own files.
import type { FileSource, LossKind } from "./options.js";

export type * from "./options.js";

/**
 * Why a call failed.
 * - `malformed`: the file breaks a rule of its format. `unsupported`: this build does not support it. `limit`: the file
 *   exceeds a limit. `io`: bytes could not be read or written. `misuse`: the caller made an error.
 * - `cancelled`: its AbortSignal fired. `memory`: there was not enough. `lost`: the worker died or could not start for
 *   another reason. `internal`: a bug in weighbridge.
 */
export type ErrorKind =
  "malformed" | "unsupported" | "limit" | "io" | "misuse" | "cancelled" | "memory" | "internal" | "lost";

/** One thing wrong or noteworthy in a file (docs/schemas/finding.json). */
export interface Finding {
  /** `format/reason`, as in docs/rules. */
  readonly rule: string;
  readonly severity: "error" | "warning" | "unsupported";
  readonly kind: "malformed" | "unsupported" | "misuse" | "io" | "limit";
  /** One sentence. It may quote the file: insert it as text, never as markup. */
  readonly message: string;
  /** The file that it is about, such as a sidecar or a file of a folder. Null: the file that was opened. */
  readonly file: string | null;
  /** Bytes from the start of that file. Rounded beyond 2^53, which no file reaches. */
  readonly offset: number | null;
  readonly tensor: string | null;
  readonly expected: string | null;
  readonly found: string | null;
  /** What would help: a limit or an option, as the command spells it. */
  readonly hint?: Hint;
}

/** What would help; `value` is null if the caller chooses it. */
export interface Hint {
  readonly what: "limit" | "option" | "size" | "file";
  readonly name: string;
  readonly value: string | null;
}

/** The build in use. */
export interface Version {
  readonly version: string;
  /** The commit of the sources; "unknown" if the build does not know it. */
  readonly commit: string;
  readonly simd: boolean;
}

/** What a container can hold (docs/schemas/formats.json). */
export interface FormatHolds {
  readonly dtypes: readonly string[];
  readonly layouts: readonly string[];
  readonly encodings: readonly string[];
  readonly digests: readonly string[];
  readonly attributes: string;
  readonly names: boolean;
  readonly tokenizer: boolean;
  readonly maxTensors: number | null;
}

export interface FormatInfo {
  /** The value of `format` options. */
  readonly name: string;
  readonly title: string;
  /** Without the dot; empty if the format has no extension. */
  readonly extensions: readonly string[];
  readonly versions: string;
  readonly reads: boolean;
  readonly writes: boolean;
  /** The model is a folder of files. */
  readonly folder: boolean;
  readonly holds: FormatHolds;
}

/** The result of a check (docs/schemas/verify.json). `valid` stays true with warnings and unsupported tensors. */
export interface Verdict {
  /** The source's name. */
  readonly path: string;
  /** Null if no format was recognized. */
  readonly format: string | null;
  readonly valid: boolean;
  /** What was checked, in one phrase; empty unless valid. */
  readonly checked: string;
  /**
   * What loading the file with Python is not known to do safely: functions and classes that pickles name, and what was
   * not looked into. Such a file is valid, but not "ok".
   */
  readonly notKnownSafe: readonly string[];
  readonly aboutCode: number;
  /** Stored parts of tensors, and how many of them have a digest. */
  readonly parts: number;
  readonly digests: number;
  /** The form in which the checksums of an .slm were computed. */
  readonly checksumForm?: string;
  readonly findings: readonly Finding[];
  /** Present if there are more findings than are listed. */
  readonly findingsTotal?: number;
}

/** One side of a pair of tensors. */
export interface ComparedTensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** How values changed from a to b, over pairs of finite numbers. Null: the number has no value. */
export interface ValueDiff {
  readonly elements: number;
  readonly changed: number;
  /** Changed by more than the tolerance. */
  readonly beyond: number;
  /** Pairs of which one is NaN, and of which one is infinite. */
  readonly nans: number;
  readonly infinite: number;
  readonly maxAbs: JsonNumber;
  readonly maxRelative: JsonNumber;
  readonly rms: JsonNumber;
  readonly relativeRms: JsonNumber;
  readonly cosine: JsonNumber;
  /** In decibels; "inf" if nothing changed. */
  readonly snr: JsonNumber;
  /** Row-major indices, in a, of the first element that changed, and of the one that changed most. */
  readonly first: number | null;
  readonly largest: number | null;
}

export type TensorChange =
  "renamed" | "reshaped" | "transposed" | "permuted" | "recast" | "changed" | "bits-only";

/** A tensor that is not the same in both models. */
export interface TensorDiff {
  readonly verdict: "equal" | "different" | "only-a" | "only-b" | "incomparable";
  readonly a: ComparedTensor | null;
  readonly b: ComparedTensor | null;
  /** How the partner was found. */
  readonly by?: "name" | "content" | "guess";
  readonly changes: readonly TensorChange[];
  /** The tensor of the other model that has this one's content. */
  readonly tiedTo?: string;
  readonly order?: string;
  /** Why it could not be compared, or has no values. */
  readonly why?: string;
  /** The quantization scheme of which it is codes: stored bytes were compared, and there are no values. */
  readonly scheme?: string;
  readonly values?: ValueDiff;
}

export interface MetadataDiff {
  readonly key: string;
  readonly tensor?: string;
  readonly a: string | null;
  readonly b: string | null;
  /** Of two lists: the first item that differs. */
  readonly first?: number;
}

/** What differs between two models (docs/schemas/diff.json). */
export interface Comparison {
  readonly a: { readonly path: string; readonly format: string; readonly tensors: number };
  readonly b: { readonly path: string; readonly format: string; readonly tensors: number };
  readonly equal: boolean;
  /** Tensors with a partner; of these, equal ones, which are not listed. */
  readonly compared: number;
  readonly same: number;
  readonly different: number;
  readonly incomparable: number;
  /** Codes of quantization schemes, compared by their stored bytes; present if there are any, with the schemes. */
  readonly codes?: number;
  readonly schemes?: readonly string[];
  /** Tensors at another place in the index, which does not count as a difference. */
  readonly moved: number;
  readonly bytes: number;
  /** At most 20,000: those whose values changed most, those that one model lacks, then those with equal values. */
  readonly tensors: readonly TensorDiff[];
  readonly metadata: readonly MetadataDiff[];
  readonly tokenizer: readonly MetadataDiff[];
}

/**
 * Where two tensors differ: a grid over the matrix whose rows are the last dimension. Block (i, j) covers the rows from
 * floor(i * rows / high) to floor((i + 1) * rows / high), and columns likewise; the lists go row by row.
 */
export interface DifferenceMap {
  readonly rows: number;
  readonly columns: number;
  readonly high: number;
  readonly wide: number;
  readonly maxAbs: readonly JsonNumber[];
  readonly changed: readonly number[];
  readonly notFinite: readonly number[];
}

/** What an edit does (docs/schemas/edit.json). */
export interface EditDetails {
  readonly path: string;
  readonly format: string | null;
  /** Null for an edit in place. */
  readonly output: string | null;
  readonly way: "nothing" | "in-place" | "copied" | "converted";
  readonly written: boolean;
  readonly changes: readonly Change[];
  /** Bytes that the header has, and that the new one needs; 0 if the format has no header of its own. */
  readonly header: number;
  readonly needed: number;
  readonly size: number;
  readonly sizeAfter: number;
}

/** A named range of bytes. */
export interface ExplainedSpan {
  readonly kind:
    "file" | "structure" | "entry" | "field" | "tensor" | "block" | "element" | "padding" | "unclaimed";
  readonly offset: number;
  readonly size: number;
  /** The structure, the field's name, the tensor's name, or the index of the element. */
  readonly what: string;
  /** What it says, or what is known about it. */
  readonly value: string | null;
}

/** What bytes of a file are (docs/schemas/explain.json). */
export interface Explanation {
  readonly path: string;
  readonly format: string | null;
  readonly size: number;
  readonly offset: number;
  readonly length: number;
  /** Outer ones before what is in them; the first is the file. */
  readonly spans: readonly ExplainedSpan[];
  readonly leftOut: number;
  /** What is wrong in the innermost spans. */
  readonly findings: readonly Finding[];
}

/** A typed attribute. Integers that a double cannot represent are bigints. Strings come from the file. */
export type AttributeValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly AttributeValue[]
  | { readonly [name: string]: AttributeValue };
export type Attributes = { readonly [name: string]: AttributeValue };

/** One part of a tensor. */
export interface TensorPart {
  /** `data`, `scales`, `indices`, ... */
  readonly role: string;
  readonly dtype: string;
  /** Bytes from the start of its file; null if the bytes are not in a file. */
  readonly offset: number | null;
  /** The stored size in bytes. */
  readonly length: number | null;
  /** The number of the file in a folder. Absent: 0, the first. */
  readonly source?: number;
  readonly encoding: string;
  readonly digest: string | null;
}

/** How files store a weight as codes, and what completes them. */
export interface StoredWeight {
  /** As the id of a scheme. */
  readonly id: string;
  /** For people: "fp8 128x128". */
  readonly name: string;
  /** The tensors that it is made of, the codes first. */
  readonly tensors: readonly string[];
  /** Of all of them. */
  readonly bytes: number;
}

/** One tensor (docs/schemas/inspect.json). */
export interface TensorInfo {
  readonly name: string;
  /** The format's number for the tensor, if names are missing or not unique. */
  readonly id?: number;
  readonly dtype: string;
  /** Slowest dimension first. Null if the file does not give it. */
  readonly shape: readonly number[] | null;
  readonly layout: string;
  /** Of quantized elements: who defined the block type, and its name, as "slm.q8_0". */
  readonly blockType?: string;
  readonly supported: boolean;
  /** Why it is not supported. */
  readonly reason?: string;
  /** In a model of numbers: how the files store the tensor, whose numbers are computed from codes. */
  readonly stored?: StoredWeight;
  /** The quantization scheme that the tensor belongs to. Codes have no statistics, and are not cast. */
  readonly scheme?: {
    readonly id: string;
    readonly name: string;
    /** Whether the tensor is codes; else it completes them. */
    readonly codes: boolean;
  };
  readonly attributes?: Attributes;
  readonly parts: readonly TensorPart[];
}

/** JSON has no NaN or infinities: they are these strings. */
export type JsonNumber = number | "nan" | "inf" | "-inf" | null;

export interface Statistics {
  readonly elements: number;
  readonly zeros: number;
  readonly nans: number;
  readonly infinities: number;
  /** Of the finite elements; null if there are none. */
  readonly min: JsonNumber;
  readonly max: JsonNumber;
  readonly mean: JsonNumber;
  /** The standard deviation; only where the histogram was asked for, as with `inspect --stats`. */
  readonly std?: JsonNumber;
  /** The finite elements in equal intervals from the least to the greatest. */
  readonly histogram?: { readonly from: JsonNumber; readonly to: JsonNumber; readonly counts: readonly number[] };
  /** Finite elements further than six standard deviations from the mean; with the histogram. */
  readonly outliers?: number;
  /** Rows of the slowest dimension that are all zero, of two dimensions or more; with the histogram. */
  readonly deadRows?: number;
}

/**
 * How many finite elements lie in each of several equal intervals between the least and the greatest; the last interval
 * includes its end. There are no counts if no element is finite.
 */
export interface Histogram {
  readonly from: number;
  readonly to: number;
  readonly counts: readonly number[];
}

export interface TokenizerInfo {
  readonly kind: "wordpiece" | "byte" | "bpe";
  readonly vocabSize: number;
  readonly tokens: number;
  readonly merges: number;
  readonly special: { readonly [name: string]: number };
}

/** The contents of a file (docs/schemas/inspect.json). */
export interface Inspection {
  readonly path: string;
  readonly format: string;
  readonly version: string | null;
  /** In bytes; for a folder, or shards with an index, of all files. */
  readonly fileSize: number;
  /** The files that `source` of a part indexes, beneath the folder that holds them all; present if there is more than one. */
  readonly sources?: readonly { readonly name: string; readonly size: number }[];
  /** As the metadata names it. */
  readonly architecture: string | null;
  /** The elements of the tensors that are not integers or booleans; of codes, the numbers that they stand for. */
  readonly parameters: number;
  /** The dtype with the most bytes, and the scheme or block type with the most quantized bytes; null if there is none. */
  readonly dtype: string | null;
  readonly quantization: string | null;
  /** Tokens of a text, and of the tokenizer; null if nothing states it. */
  readonly contextLength: number | null;
  readonly vocabulary: number | null;
  /** Whether the metadata or a file of the folder has one. */
  readonly chatTemplate: boolean;
  /** As the metadata names it. */
  readonly license: string | null;
  /** All tensors of the model. */
  readonly tensorCount: number;
  /** All tensors of the model by dtype, the one with the most bytes first. */
  readonly dtypes: readonly {
    readonly dtype: string;
    readonly tensors: number;
    readonly elements: number;
    readonly bytes: number;
  }[];
  /** The quantization schemes that spread a weight over several tensors; present if there are any. */
  readonly schemes?: readonly {
    readonly id: string;
    readonly name: string;
    /** Tensors that are codes. */
    readonly codes: number;
    /** Tensors that complete codes. */
    readonly companions: number;
  }[];
  /** Whether tensor data was checked too. */
  readonly checked: boolean;
  /** The form in which the checksums of an .slm were computed. */
  readonly checksumForm?: string;
  readonly checksums?: { readonly [name: string]: string };
  readonly dtypeLabel?: string;
  readonly attributes: Attributes;
  readonly tokenizer?: TokenizerInfo;
  readonly findings?: readonly Finding[];
  readonly findingsTotal?: number;
  readonly tensors: readonly TensorInfo[];
}

/** The content digest, which is the same in every format (docs/schemas/hash.json). */
export interface Hash {
  readonly path: string;
  readonly format: string | null;
  readonly of: "content" | "content-without-names" | "file-sha256" | "zt-content";
  /** "wb2:" and 64 hexadecimal digits; only the digits for a digest of version 1, for a SHA-256 and for "zt-content". */
  readonly digest: string;
  /** The version of the content digest; null for the others. */
  readonly version: 1 | 2 | null;
}

export type TypedArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** The elements of a tensor, dense, row-major, little-endian. */
export interface TensorData {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
  /** The same bytes as numbers; null for a dtype without a typed array (f16, bf16, f8_...). */
  readonly array: TypedArray | null;
}

/** A blocker, a loss or a change. */
export interface Change {
  readonly kind: LossKind;
  /** The name of the tensor or attribute. */
  readonly subject: string;
  readonly from: string;
  readonly to: string;
}

export interface Loss extends Change {
  /** Whether the conversion is possible with it: the options consent to it, or it needs no consent. */
  readonly allowed: boolean;
  /** Whether an option allows it or asks for it. */
  readonly consented: boolean;
}

/** docs/schemas/convert.json */
export interface PlanDetails {
  readonly path: string;
  readonly format: string;
  readonly output: string;
  readonly to: string;
  readonly possible: boolean;
  readonly written: boolean;
  readonly blockers: readonly Change[];
  readonly losses: readonly Loss[];
  readonly changes: readonly Change[];
  readonly tensors: number;
  /** That hold the tensors: more than one if they are shards. */
  readonly files: number;
  readonly payloadSize: number;
  readonly outputSize: number;
  readonly outputSizeExact: boolean;
  /** What the tensors of each type take, and of all ("in all"), before an encoding. */
  readonly types: readonly TypeSize[];
  /** What casts did to the values, once written. */
  readonly casts: readonly CastReport[];
}

/** The tensors of one type in an output. */
export interface TypeSize {
  readonly type: string;
  readonly tensors: number;
  readonly elements: number;
  readonly size: number;
  readonly bitsPerWeight: number;
}

/** What casting the tensors of one dtype to another did to their values. */
export interface CastReport {
  readonly from: string;
  readonly to: string;
  readonly tensors: number;
  readonly values: number;
  /** Values beyond the range of `to`. */
  readonly overflowed: number;
  /** Values that were not zero and are now. */
  readonly flushed: number;
  /** Of a finite value that did not overflow. */
  readonly largestError: number;
}

/** One text as tokens (docs/schemas/tokenize.json). */
export interface Tokens {
  readonly ids: readonly number[];
  readonly tokens: readonly string[];
  /** The first byte and the one after the last, in the UTF-8 text. */
  readonly offsets?: readonly (readonly [number, number])[];
  readonly truncated: boolean;
  /** The number of ill-formed sequences that were replaced. */
  readonly replaced?: number;
}

/** A piece of generated text. It may be empty while a character of several tokens is incomplete. */
export interface Piece {
  readonly text: string;
  /** Tokens so far, including those of this piece. */
  readonly tokens: number;
}

/** How a generation ended (docs/schemas/generate.json). */
export interface Generated {
  readonly promptTokens: number;
  readonly tokens: readonly number[];
  /** The whole text. */
  readonly text: string;
  readonly stopped: "eos" | "length" | "text" | "context";
  /** How quantized weights were multiplied. */
  readonly precision: "exact" | "fast";
  readonly tokensPerSecond: number;
}

/** The records that `admission` checks. Without a registry no adapter is offered; a step without a file is left out. */
export interface AdmissionInput {
  readonly artifact: FileSource;
  readonly manifest?: FileSource | undefined;
  readonly receipt?: FileSource | undefined;
  readonly ledger?: FileSource | undefined;
  readonly registry?: FileSource | undefined;
  readonly adapters?: readonly FileSource[] | undefined;
}

export interface AdmissionCheck {
  readonly step: "manifest" | "artifact" | "receipt" | "registry";
  readonly passed: boolean;
  /** Why it did not pass; empty if it did. */
  readonly findings: readonly Finding[];
}

export interface AdmissionAdapter {
  /** The adapter source's name. */
  readonly path: string;
  readonly offered: boolean;
  /** Why it may not be offered, a sentence that may quote the files; empty if it may. */
  readonly reason: string;
  /** The rule that it breaks: `chain/...`; empty if none. */
  readonly rule: string;
}

export interface Admission {
  readonly checks: readonly AdmissionCheck[];
  /** In the order of the input. */
  readonly adapters: readonly AdmissionAdapter[];
}
