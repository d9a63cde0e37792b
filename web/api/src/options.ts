// SPDX-License-Identifier: Apache-2.0
// What callers give: sources and options. types.ts has what they get.

import type { Loss } from "./types.js";

/** A file in memory. Its bytes are neither changed nor detached. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** A Blob with a name, such as a `File`. */
export type NamedBlob = Blob & { readonly name: string };

/**
 * Several files as one model: a Hugging Face folder. A file's name may contain `/`; it is then a path inside it.
 * A `File` from a folder picker is named by its `webkitRelativePath` without the name of the picked folder.
 */
export interface Folder {
  readonly name: string;
  readonly files: readonly FileSource[];
}

/**
 * One file. A string is a path and needs Node; a format can then read sidecar files beside it, as the command does. A
 * `File` is read lazily, slice by slice, and must not change on disk while it is in use (reads then fail with `io`).
 */
export type FileSource = NamedBlob | NamedBytes | string;

/** A file or a folder; a string may be the path of either. */
export type Source = FileSource | Folder;

/** Called with the bytes done and their total, about twenty times a second at most. `total` is 0 if it is unknown. */
export type OnProgress = (done: number, total: number) => void;

/** Options of every call. */
export interface CallOptions {
  /**
   * Stops the call, which then rejects with kind `cancelled`. Generation stops between two steps. Any other running job
   * is stopped by ending its workers, and a new one is started: open models are opened again on their next use. A
   * generation that runs at the same time is lost.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Options of calls that read tensor data. */
export interface LongCallOptions extends CallOptions {
  readonly onProgress?: OnProgress | undefined;
}

export interface StartOptions {
  /** Use the SIMD build. Default: if the engine supports it. */
  readonly simd?: boolean | undefined;
  /** How many workers may verify a large .zt file together. Default: one for each processor, 4 at most. */
  readonly workers?: number | undefined;
  /** The folder that holds `worker.js` and `core/`; must end in `/`. Default: the folder of this module. */
  readonly base?: URL | undefined;
}

export interface OpenOptions extends LongCallOptions {
  /** A name of `formats()`. Default: detected from the content. */
  readonly format?: string | undefined;
  /**
   * `structure` skips checks that read tensor data (checksums, NaN rules), so that a file of any size opens at once.
   * Default: `all`.
   */
  readonly checks?: "all" | "structure" | undefined;
  /**
   * What the files leave open of a quantization scheme, as `gptq:zeros=v1` or `fp8:block=128x128`. Rejects with `misuse`,
   * which names what there is, if no scheme has this name or this question.
   */
  readonly scheme?: string | readonly string[] | undefined;
  /** The tokenizer file, for formats that keep it beside the weights (llama2.c). */
  readonly tokenizer?: FileSource | undefined;
  /** Files of the same folder, with their names. */
  readonly beside?: readonly FileSource[] | undefined;
}

export interface VerifyOptions extends LongCallOptions {
  readonly format?: string | undefined;
  readonly checks?: "all" | "structure" | undefined;
  readonly scheme?: string | readonly string[] | undefined;
  readonly beside?: readonly FileSource[] | undefined;
}

/** Options of a comparison, as those of `weighbridge diff`. */
export interface DiffOptions extends LongCallOptions {
  /** With one of the two, elements are equal if |b - a| <= atol + rtol * |b|. */
  readonly atol?: number | undefined;
  readonly rtol?: number | undefined;
  /** Compare bits. Excludes a tolerance. */
  readonly exact?: boolean | undefined;
  /** Look for permuted rows, transposed squares and tied tensors. */
  readonly permuted?: boolean | undefined;
  /** Compare metadata and tokenizers. Default: true. */
  readonly metadata?: boolean | undefined;
  /** How far to look for a tensor that one model lacks. Default: `guess`. */
  readonly match?: "names" | "content" | "guess" | undefined;
  /** `llama`: compare under the names of llama.cpp. */
  readonly naming?: "llama" | undefined;
  /** Patterns of the tensors to compare, and of those to leave out. */
  readonly only?: readonly string[] | undefined;
  readonly without?: readonly string[] | undefined;
  /** New names for tensors of the first model. */
  readonly rename?: { readonly [name: string]: string } | undefined;
}

/** Changes of a file's metadata and names. */
export interface EditOptions extends LongCallOptions {
  /** Keys and their values as text; each keeps the type of its present value. */
  readonly set?: { readonly [key: string]: string } | undefined;
  readonly unset?: readonly string[] | undefined;
  /** New names for tensors. */
  readonly rename?: { readonly [name: string]: string } | undefined;
  readonly beside?: readonly FileSource[] | undefined;
  /** The edited file's name. Default: that of the source. */
  readonly name?: string | undefined;
}

export interface ExplainOptions extends CallOptions {
  readonly format?: string | undefined;
  readonly beside?: readonly FileSource[] | undefined;
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
  | "unsupported"
  | "overflow"
  /** A file beside the weights of a folder. Only named: it needs no consent. */
  | "file"
  /** Files of the model that are missing, or were not given. */
  | "part"
  /** Values of blocks, rounded once more to blocks of another type. */
  | "requantize";

/** Options of a conversion (as those of `weighbridge convert`). */
export interface PlanOptions extends CallOptions {
  /** The kinds of loss to allow. */
  readonly allow?: readonly LossKind[] | undefined;
  /** Cast floating-point tensors to this dtype: `f16`, `bf16`, `f32`. */
  readonly cast?: string | undefined;
  /** Cast tensors of integers, `i4` and `u4` too, to this dtype: `i8`, `i32`. A number that does not fit is an error. */
  readonly castInt?: string | undefined;
  /**
   * Make quantized tensors dense, of this dtype. `auto`: each of the dtype to which the library that made it decodes it,
   * with the bits of that library.
   */
  readonly dequantize?: "auto" | "f32" | "f16" | "bf16" | undefined;
  /** Quantize to this type: `q8_0`, ... */
  readonly quantize?: string | undefined;
  /** One of the format's `holds.encodings`. */
  readonly encoding?: string | undefined;
  /** The level of the encoding, from 1. */
  readonly level?: number | undefined;
  /** One of the format's `holds.digests`. */
  readonly digest?: string | undefined;
  /** The version of the target format. */
  readonly version?: string | undefined;
  /** Write the same bytes for the same content, whatever the order, container and encoding of the input. */
  readonly canonical?: boolean | undefined;
  /** `gguf`: give a Llama or a BERT the names, metadata and vocabulary of llama.cpp, so that it runs there. */
  readonly naming?: "llama" | undefined;
  /** Keep only tensors whose whole name matches one of these globs. */
  readonly only?: readonly string[] | undefined;
  /** Leave out tensors whose whole name matches one of these globs. */
  readonly without?: readonly string[] | undefined;
  /** New names of tensors, by their old names. */
  readonly rename?: Readonly<Record<string, string>> | undefined;
  /** Metadata to set, by key, as text. */
  readonly set?: Readonly<Record<string, string>> | undefined;
  /** Keys of metadata to leave out. */
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
  /** The output's name. Default: the source's name with the format's extension. */
  readonly name?: string | undefined;
}

export interface ConvertOptions extends LongCallOptions {
  /** Gets the losses to which no option consents, if there are any, once the output is written (default: console.warn). */
  readonly onLoss?: ((losses: readonly Loss[]) => void) | undefined;
}

export interface EmbedderOptions extends LongCallOptions {
  readonly pooling?: "mean" | "cls" | "max" | "mean_sqrt_len" | "weightedmean" | "lasttoken" | undefined;
  /** The precision of the computation. Default: `f32`. */
  readonly precision?: "f32" | "f16" | "bf16" | "int8" | undefined;
  /** The largest number of tokens, including the special ones. Default: that of the model. */
  readonly maxLength?: number | undefined;
  /** The number of attention heads, if the file does not give it. */
  readonly heads?: number | undefined;
  /** A `vocab.txt` to use in place of the file's vocabulary. */
  readonly vocabulary?: FileSource | undefined;
  /** `["part"]` runs a model of which files are missing. */
  readonly allow?: readonly "part"[] | undefined;
  /** The text to put before each text, for every role; `""` is none. Default: the prompts that the model names. */
  readonly prompt?: string | undefined;
  /** The same, by its name among the model's prompts. */
  readonly promptName?: string | undefined;
  /** Settings of the model to pass over although this build does not follow them: keys, as the error names them. */
  readonly ignoreSetting?: readonly string[] | undefined;
}

export interface EmbedOptions extends LongCallOptions {
  /** What the texts are, which decides among the model's prompts. Default: `text`. */
  readonly role?: "text" | "query" | "document" | undefined;
}

export interface GeneratorOptions extends LongCallOptions {
  /** The largest number of tokens. Default: that of the model. */
  readonly context?: number | undefined;
  /** What quantized weights are multiplied by: activations in f32 (`exact`, the default), or rounded to 8 bits. */
  readonly precision?: "exact" | "fast" | undefined;
  /** `["part"]` runs a model of which files are missing. */
  readonly allow?: readonly "part"[] | undefined;
}

export interface GenerateOptions extends CallOptions {
  /** Default: 256. */
  readonly maxTokens?: number | undefined;
  /** 0, the default, always takes the likeliest token. */
  readonly temperature?: number | undefined;
  /** Sample from this many of the likeliest tokens, 1 to 1024. Default: 1024. */
  readonly topK?: number | undefined;
  /** Of these, sample from the likeliest that together reach this probability. Default: 1. */
  readonly topP?: number | undefined;
  /** Random seed: the same seed gives the same text. Default: 1. */
  readonly seed?: number | undefined;
  /** The text ends before the first occurrence of one of these. */
  readonly stop?: readonly string[] | undefined;
}
