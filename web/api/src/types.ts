// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the package: what goes in (sources, options) and what comes back. Objects that the core prints as
// JSON keep the names of docs/schemas (snake_case); what only this package knows is in camelCase. Classes stand in
// their own files.

/** A file with its bytes in memory. The bytes are not changed and not detached. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** A Blob with a name, as each `File` is one. */
export type NamedBlob = Blob & { readonly name: string };

/**
 * Several files as one model: a Hugging Face folder. A file's name may hold `/`, and is then a path inside the folder.
 * A `File` that a folder picker gave is named by its `webkitRelativePath` without the picked folder's own name.
 */
export interface Folder {
  readonly name: string;
  readonly files: readonly FileSource[];
}

/**
 * One file. A string is a path and needs Node; a file opened by its path sees its neighbors, as it does for the
 * command. A `File` is read lazily, slice by slice, and must not change on disk while it is in use (reads then fail
 * with kind `io`).
 */
export type FileSource = NamedBlob | NamedBytes | string;

/** A file, or a folder; a string may be the path of either. */
export type Source = FileSource | Folder;

/**
 * Why a call failed.
 * - `malformed` the file breaks its format; `unsupported` it is sound but beyond this build; `limit` it is larger than
 *   a limit allows; `io` bytes could not be read or written; `misuse` the call makes no sense.
 * - `cancelled` its AbortSignal fired; `memory` there was not enough; `lost` the worker died, or could not start, for
 *   another reason; `internal` a fault of weighbridge.
 */
export type ErrorKind =
  "malformed" | "unsupported" | "limit" | "io" | "misuse" | "cancelled" | "memory" | "internal" | "lost";

/** One thing found in a file (docs/schemas/finding.json). */
export interface Finding {
  /** `format/reason`, as in docs/rules. */
  readonly rule: string;
  readonly severity: "error" | "warning" | "unsupported";
  readonly kind: "malformed" | "unsupported" | "misuse" | "io" | "limit";
  /** One sentence. It may quote the file: insert it as text, never as markup. */
  readonly message: string;
  /** The file that it is about: a sidecar, a file of a folder. Null: the one that was asked about. */
  readonly file: string | null;
  /** Bytes from the start of that file. Rounded beyond 2^53, where no file reaches. */
  readonly offset: number | null;
  readonly tensor: string | null;
  readonly expected: string | null;
  readonly found: string | null;
  /** What would help: a limit, or an option of what was called, as the command spells it. */
  readonly hint?: Hint;
}

/** What would help; `value` is null where it is the caller's to choose. */
export interface Hint {
  readonly what: "limit" | "option";
  readonly name: string;
  readonly value: string | null;
}

/** Bytes done of bytes in all, at most about twenty times a second. `total` is 0 where it is not known. */
export type OnProgress = (done: number, total: number) => void;

/** What every call takes. */
export interface CallOptions {
  /**
   * Stops the call: it rejects with kind `cancelled`. Generation stops between two steps; every other running job is
   * stopped by ending the worker, which is replaced: open models stay usable and are opened again on their next use. A
   * generation that runs at the same moment is lost with the worker.
   */
  readonly signal?: AbortSignal | undefined;
}

/** What calls that pass over the payload take. */
export interface LongCallOptions extends CallOptions {
  readonly onProgress?: OnProgress | undefined;
}

export interface StartOptions {
  /** Use the SIMD build; by default where the engine has it. */
  readonly simd?: boolean | undefined;
  /** The folder that holds `worker.js` and `core/`; by default the one this module lies in. Must end in `/`. */
  readonly base?: URL | undefined;
}

export interface OpenOptions extends LongCallOptions {
  /** A name of `formats()`, where the content should not decide. */
  readonly format?: string | undefined;
  /**
   * `structure` leaves out what must read the payload (checksums, NaN rules): a file of any size then opens at once.
   * Default `all`.
   */
  readonly checks?: "all" | "structure" | undefined;
  /** The tokenizer's own file, for formats that have it beside the weights (llama2.c). */
  readonly tokenizer?: FileSource | undefined;
  /** Files that lie in the same folder, under their names. */
  readonly beside?: readonly FileSource[] | undefined;
}

export interface VerifyOptions extends LongCallOptions {
  readonly format?: string | undefined;
  readonly checks?: "all" | "structure" | undefined;
  readonly beside?: readonly FileSource[] | undefined;
}

/** Which build runs. */
export interface Version {
  readonly version: string;
  /** Of the sources; "unknown" where the build does not know it. */
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
  readonly max_tensors: number | null;
}

export interface FormatInfo {
  /** What `format` options take. */
  readonly name: string;
  readonly title: string;
  /** Without the dot; empty where a format has no extension of its own. */
  readonly extensions: readonly string[];
  readonly versions: string;
  readonly reads: boolean;
  readonly writes: boolean;
  /** The model is a folder of files. */
  readonly folder: boolean;
  readonly holds: FormatHolds;
}

/** Whether a file is sound (docs/schemas/verify.json). `valid` is true with warnings and unsupported tensors only. */
export interface Verdict {
  /** The source's name. */
  readonly path: string;
  /** Null where no format fits. */
  readonly format: string | null;
  readonly valid: boolean;
  readonly findings: readonly Finding[];
  /** Present where there are more findings than are listed. */
  readonly findings_total?: number;
}

/** A typed attribute. Integers that a double cannot hold are bigints. Texts come from the file. */
export type AttributeValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly AttributeValue[]
  | { readonly [name: string]: AttributeValue };
export type Attributes = { readonly [name: string]: AttributeValue };

/** Bytes of one component of a tensor. */
export interface TensorPart {
  /** `data`, `scales`, `indices`, ... */
  readonly role: string;
  readonly dtype: string;
  /** Bytes from the start of its file; null where the bytes do not lie in a file. */
  readonly offset: number | null;
  /** Bytes as stored. */
  readonly length: number | null;
  /** Which further file of a folder, from 1. Absent: the first. */
  readonly source?: number;
  readonly encoding: string;
  readonly digest: string | null;
}

/** A tensor of the list (docs/schemas/inspect.json). */
export interface TensorInfo {
  readonly name: string;
  /** Where names are not unique or not there: the format's own number. */
  readonly id?: number;
  readonly dtype: string;
  /** Slowest dimension first. Null where the file does not say. */
  readonly shape: readonly number[] | null;
  readonly layout: string;
  /** Of quantized elements: who defined the block type, and its name, as "slm.q8_0". */
  readonly block_type?: string;
  readonly supported: boolean;
  /** Why it is not supported. */
  readonly reason?: string;
  readonly attributes?: Attributes;
  readonly parts: readonly TensorPart[];
}

/** JSON has no NaN and no infinities: they come as these texts. */
export type JsonNumber = number | "nan" | "inf" | "-inf" | null;

export interface Statistics {
  readonly elements: number;
  readonly zeros: number;
  readonly nans: number;
  readonly infinities: number;
  /** Of the finite elements; null where there are none. */
  readonly min: JsonNumber;
  readonly max: JsonNumber;
  readonly mean: JsonNumber;
}

/**
 * How many finite elements lie in each of equal intervals between the least and the greatest; the last has its end too.
 * No counts at all: no element is finite.
 */
export interface Histogram {
  readonly from: number;
  readonly to: number;
  readonly counts: readonly number[];
}

export interface TokenizerInfo {
  readonly kind: "wordpiece" | "byte" | "bpe";
  readonly vocab_size: number;
  readonly tokens: number;
  readonly merges: number;
  readonly special: { readonly [name: string]: number };
}

/** What is in a file (docs/schemas/inspect.json). */
export interface Inspection {
  readonly path: string;
  readonly format: string;
  readonly version: string | null;
  /** Bytes; for a folder, of all its files. */
  readonly file_size: number;
  /** Whether the payload was checked too. */
  readonly checked: boolean;
  readonly checksums?: { readonly [name: string]: string };
  readonly dtype_label?: string;
  readonly attributes: Attributes;
  readonly tokenizer?: TokenizerInfo;
  readonly findings?: readonly Finding[];
  readonly findings_total?: number;
  readonly tensors: readonly TensorInfo[];
}

/** The digest of the content, the same in every format that holds it (docs/schemas/hash.json). */
export interface Hash {
  readonly path: string;
  readonly format: string | null;
  readonly of: "content" | "content-without-names" | "file-sha256";
  /** "wb2:" and 64 hexadecimal digits; the digits alone for a digest of version 1 and for a SHA-256. */
  readonly digest: string;
  /** Of the content digest; null for a SHA-256. */
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
  /** The same bytes as numbers; null for a dtype that JavaScript has no array for (f16, bf16, f8_...). */
  readonly array: TypedArray | null;
}

/** What a conversion may do (as the options of `weighbridge convert`). */
export interface PlanOptions extends CallOptions {
  /** Losses that are agreed to, by their kind. */
  readonly allow?: readonly LossKind[] | undefined;
  /** A dtype that floating-point tensors are cast to: `f16`, `bf16`, `f32`. */
  readonly cast?: string | undefined;
  /** A quantized form: `q8_0`, ... */
  readonly quantize?: string | undefined;
  /** One of the format's `holds.encodings`. */
  readonly encoding?: string | undefined;
  /** Of the encoding; 0 is its default. */
  readonly level?: number | undefined;
  /** One of the format's `holds.digests`. */
  readonly digest?: string | undefined;
  /** Of the format that is written. */
  readonly version?: string | undefined;
  /** Only tensors whose whole name matches one of these globs. */
  readonly only?: readonly string[] | undefined;
  /** No tensor whose whole name matches one of these globs. */
  readonly without?: readonly string[] | undefined;
  /** New names of tensors, by their whole names. */
  readonly rename?: Readonly<Record<string, string>> | undefined;
  /** Metadata to set, as text, by key. */
  readonly set?: Readonly<Record<string, string>> | undefined;
  /** Metadata to leave out, by key. */
  readonly unset?: readonly string[] | undefined;
  /** `slm`: keep fewer key and value heads than query heads. */
  readonly keepGqa?: boolean | undefined;
  /** `slm`, with `quantize`: quantize the norms too. */
  readonly quantizeNorms?: boolean | undefined;
  /** `zt0`: omit the `layout` field. */
  readonly omitLayoutField?: boolean | undefined;
  /** `embd`, `hf`: an ISO 8601 time. */
  readonly createdAt?: string | undefined;
  /** `embd`, `hf` */
  readonly modelName?: string | undefined;
  /** `embd`, `hf` */
  readonly modelVersion?: string | undefined;
  /** The output's name; by default the source's with the format's extension. */
  readonly name?: string | undefined;
}

export type LossKind =
  | "attribute"
  | "attribute-type"
  | "extra"
  | "tokenizer"
  | "name"
  | "shape"
  | "layout"
  | "dtype"
  | "precision"
  | "alias"
  | "unsupported";

/** What will be other than before. */
export interface Change {
  readonly kind: LossKind;
  /** What it is about: a tensor's or an attribute's name. */
  readonly subject: string;
  readonly from: string;
  readonly to: string;
}

export interface Loss extends Change {
  /** Whether the options agree to it. A loss that is not allowed makes the conversion impossible. */
  readonly allowed: boolean;
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
  readonly payload_size: number;
  readonly output_size: number;
  readonly output_size_exact: boolean;
}

/** One text as tokens (docs/schemas/tokenize.json). */
export interface Tokens {
  readonly ids: readonly number[];
  readonly tokens: readonly string[];
  /** First byte and the one after the last, in the UTF-8 text. */
  readonly offsets?: readonly (readonly [number, number])[];
  readonly truncated: boolean;
  /** How many ill-formed sequences were replaced. */
  readonly replaced?: number;
}

export interface EmbedderOptions extends LongCallOptions {
  readonly pooling?: "mean" | "cls" | "max" | undefined;
  /** The precision that is computed in. Default `f32`. */
  readonly precision?: "f32" | "f16" | "int8" | undefined;
  /** Tokens, with the special ones; by default what the model says. */
  readonly maxLength?: number | undefined;
  /** Attention heads, where the file does not say. */
  readonly heads?: number | undefined;
  /** A `vocab.txt`, in place of the file's own vocabulary. */
  readonly vocabulary?: FileSource | undefined;
}

export interface GeneratorOptions extends LongCallOptions {
  /** Tokens; by default what the model says. */
  readonly context?: number | undefined;
}

export interface GenerateOptions extends CallOptions {
  /** Default 256. */
  readonly maxTokens?: number | undefined;
  /** 0 takes the likeliest token always, and is the default. */
  readonly temperature?: number | undefined;
  /** Draw from so many of the likeliest, 1 to 1024. Default 1024. */
  readonly topK?: number | undefined;
  /** Of these from the likeliest that reach this probability together. Default 1. */
  readonly topP?: number | undefined;
  /** The same seed gives the same text. Default 1. */
  readonly seed?: number | undefined;
  /** The text ends before the first of these. */
  readonly stop?: readonly string[] | undefined;
}

/** Text as it comes. A piece may be empty while a character of several tokens is under way. */
export interface Piece {
  readonly text: string;
  /** Tokens so far, this piece's with them. */
  readonly tokens: number;
}

/** How a generation ended (docs/schemas/generate.json). */
export interface Generated {
  readonly prompt_tokens: number;
  readonly tokens: readonly number[];
  /** All of it. */
  readonly text: string;
  readonly stopped: "eos" | "length" | "text" | "context";
  readonly tokens_per_second: number;
}

/** What `admission` weighs. Without a registry no adapter is offered; a step whose file is absent is left out. */
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
  /** Why it did not pass; empty where it did. */
  readonly findings: readonly Finding[];
}

export interface AdmissionAdapter {
  /** The adapter source's name. */
  readonly path: string;
  readonly offered: boolean;
  /** Why it may not be offered, a sentence that may quote the files; empty where it may. */
  readonly reason: string;
  /** The rule that speaks against it: `chain/...`; empty where none does. */
  readonly rule: string;
}

export interface Admission {
  readonly checks: readonly AdmissionCheck[];
  /** In the order of the input. */
  readonly adapters: readonly AdmissionAdapter[];
}
