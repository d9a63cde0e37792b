// SPDX-License-Identifier: Apache-2.0
// An open model outside the worker: the list of its tensors, and how it was opened, so that a new worker can open it
// again.

import { coreOptions } from "./core_options.js";
import { Embedder } from "./embedder.js";
import { WeighbridgeError } from "./errors.js";
import { Generator } from "./generator.js";
import { host } from "./host.js";
import type { Link, Session } from "./link.js";
import { Output } from "./output.js";
import { Plan } from "./plan.js";
import type { MountedSource, OpenArguments, OpenedModel } from "./protocol.js";
import { known, Remote } from "./remote.js";
import { mounted, mountedBeside, readBytes } from "./source.js";
import { typedArray } from "./typed_array.js";
import type {
  Attributes,
  CallOptions,
  Comparison,
  DifferenceMap,
  DiffOptions,
  EmbedderOptions,
  FileSource,
  Finding,
  GeneratorOptions,
  Hash,
  Histogram,
  Inspection,
  LongCallOptions,
  OpenOptions,
  PlanOptions,
  Source,
  Statistics,
  TensorData,
  TensorInfo,
  TokenizerInfo,
  Tokens,
} from "./types.js";

export class Model {
  readonly #link: Link;
  readonly #source: Source;
  readonly #remote: Remote;
  /** Whether the caller said something of a quantization scheme, which the core checks against the tensors. */
  readonly #asked: boolean;
  readonly #index = new Map<string, number>();

  /** Everything that the core reports about the file (docs/schemas/inspect.json). */
  readonly inspection: Inspection;

  private constructor(link: Link, source: Source, remote: Remote, inspection: Inspection, asked: boolean) {
    this.#link = link;
    this.#source = source;
    this.#remote = remote;
    this.#asked = asked;
    this.inspection = inspection;
    inspection.tensors.forEach((tensor, index) => {
      if (!this.#index.has(tensor.name)) this.#index.set(tensor.name, index);
    });
  }

  /** @internal */
  static async open(link: Link, source: Source, options: OpenOptions): Promise<Model> {
    const platform = await host();
    const args: OpenArguments = {
      ...await mountedBeside(platform, source, options.beside),
      options: coreOptions(options),
      tokenizer: options.tokenizer === undefined ? null : await mounted(platform, options.tokenizer),
    };
    return Model.#opened(link, source, null, options, (session, again) =>
      // A new worker does not repeat the checks.
      again ? session.call("open", { ...args, options: { ...args.options, checks: "structure" } })
        : session.call("open", args, options.onProgress));
  }

  static async #opened(
    link: Link,
    source: Source,
    parent: Remote | null,
    options: OpenOptions,
    open: (session: Session, again: boolean, parent: number) => Promise<OpenedModel>,
  ): Promise<Model> {
    let first: Inspection | undefined;
    const remote = new Remote(parent, async (session, above) => {
      const { model, inspection } = await open(session, first !== undefined, above);
      first ??= inspection;
      return model;
    });
    await link.run((session) => remote.handle(session), options.signal);
    return new Model(link, source, remote, known(first), (options.scheme ?? "").length > 0);
  }

  get format(): string {
    return this.inspection.format;
  }
  get version(): string | null {
    return this.inspection.version;
  }
  /** The size in bytes; for a folder, of all its files. */
  get fileSize(): number {
    return this.inspection.fileSize;
  }
  get attributes(): Attributes {
    return this.inspection.attributes;
  }
  /** In the order of the file. */
  get tensors(): readonly TensorInfo[] {
    return this.inspection.tensors;
  }
  get tokenizer(): TokenizerInfo | null {
    return this.inspection.tokenizer ?? null;
  }
  get checksums(): { readonly [name: string]: string } {
    return this.inspection.checksums ?? {};
  }
  /** Warnings about a file that can be used. */
  get findings(): readonly Finding[] {
    return this.inspection.findings ?? [];
  }

  /** The content digest; without `names`, it does not depend on the names of the tensors. */
  async hash(options: LongCallOptions & { readonly names?: boolean | undefined } = {}): Promise<Hash> {
    return this.#run((session, model) =>
      session.call("hash", { model, names: options.names ?? true }, options.onProgress), options);
  }

  /**
   * The content digest that the text of zTensor 2 defines, as `weighbridge hash --zt` prints it. For a file of that
   * format whose parts all have digests; verify() checks them.
   */
  async ztHash(options: LongCallOptions = {}): Promise<Hash> {
    return this.#run((session, model) => session.call("ztHash", { model }, options.onProgress), options);
  }

  /** A tensor is given by its name, or by its index in `tensors` if names are not unique. */
  async statistics(tensor: string | number, options: LongCallOptions = {}): Promise<Statistics> {
    const args = { tensor: this.#place(tensor) };
    return this.#run((session, model) => session.call("statistics", { model, ...args }, options.onProgress), options);
  }

  async histogram(tensor: string | number, bins = 64, options: LongCallOptions = {}): Promise<Histogram> {
    const args = { tensor: this.#place(tensor), bins };
    return this.#run((session, model) => session.call("histogram", { model, ...args }, options.onProgress), options);
  }

  /**
   * Rows of the slowest dimension as f32, concatenated; a scalar is one row of one element. Rejects with `misuse` for
   * rows outside the tensor.
   */
  async rows(tensor: string | number, first: number, count: number, options: CallOptions = {}): Promise<Float32Array> {
    const args = { tensor: this.#place(tensor), first, count };
    return this.#run((session, model) => session.call("rows", { model, ...args }), options);
  }

  /** A whole tensor, at most 1 GiB, in its own dtype or in the requested one. */
  async read(
    tensor: string | number,
    options: LongCallOptions & { readonly dtype?: string | undefined } = {},
  ): Promise<TensorData> {
    const args = { tensor: this.#place(tensor), dtype: options.dtype ?? "" };
    const data = await this.#run((session, model) =>
      session.call("read", { model, ...args }, options.onProgress), options);
    return { ...data, array: typedArray(data.dtype, data.bytes) };
  }

  /** A tensor as a `.npy` file. */
  async extract(tensor: string | number, options: LongCallOptions = {}): Promise<Output> {
    const at = this.#place(tensor);
    // A tensor's name is not a valid file name: it may contain slashes, or be empty.
    const name = `${(this.tensors[at]?.name ?? "").replace(/[^\w.-]+/g, "_").slice(0, 100) || "tensor"}.npy`;
    const args = { tensor: at, name };
    const written = await this.#run((session, model) =>
      session.call("extract", { model, ...args }, options.onProgress), options);
    return new Output(written);
  }

  /**
   * What differs in `other`, whatever the containers: tensors by their values, metadata, tokenizers. Both models are of
   * the same Weighbridge. Reads both side by side, in constant memory.
   */
  async diff(other: Model, options: DiffOptions = {}): Promise<Comparison> {
    return this.#with(other, (session, a, b) =>
      session.call("diff", { a, b, options: coreOptions(options) }, options.onProgress), options);
  }

  /**
   * Where two tensors differ, over a grid of at most `high` by `wide` blocks (up to 1024 each): `a` is the name of a
   * tensor of this model, `b` of one of `other`, as `diff` with the same options has them.
   */
  async differenceMap(
    other: Model,
    tensors: { readonly a: string; readonly b: string },
    grid: { readonly high: number; readonly wide: number },
    options: DiffOptions = {},
  ): Promise<DifferenceMap> {
    const args = { options: coreOptions(options), tensors, grid };
    return this.#with(other, (session, a, b) =>
      session.call("differenceMap", { a, b, ...args }, options.onProgress), options);
  }

  /** Plans a conversion to another format: what it would change and lose. Writes nothing. */
  async plan(format: string, options: PlanOptions = {}): Promise<Plan> {
    return Plan.make(this.#link, this.#remote, this.inspection.path, format, options);
  }

  /** Needs a tokenizer: that of the file, or the one given when it was opened. */
  async tokenize(
    text: string,
    options: CallOptions & { readonly special?: boolean | undefined } = {},
  ): Promise<Tokens> {
    const args = { text, special: options.special ?? true };
    return this.#run((session, model) => session.call("tokenize", { model, ...args }), options);
  }

  /** For a BERT: embeds texts. */
  async embedder(options: EmbedderOptions = {}): Promise<Embedder> {
    return Embedder.make(this.#link, this.#remote, options);
  }

  /** For a language model: generates text. */
  async generator(options: GeneratorOptions = {}): Promise<Generator> {
    return Generator.make(this.#link, this.#remote, options);
  }

  /**
   * The model with adapter packages applied. This model does not change, and must stay open while the new one is used.
   */
  async adapt(adapters: readonly FileSource[], options: LongCallOptions = {}): Promise<Model> {
    const platform = await host();
    const files: MountedSource[] = await Promise.all(adapters.map((file) => mounted(platform, file)));
    return Model.#opened(this.#link, this.#source, this.#remote, options, (session, again, model) =>
      session.call("adapt", { model, adapters: files }, again ? undefined : options.onProgress));
  }

  /**
   * The model with the numbers that its codes stand for: each weight of a quantization scheme is one dense tensor, which
   * `stored` describes, with the bits of the library that made the file; the tensors that it is made of are gone. Codes
   * that this version does not decode, or of which the files leave something open (`scheme` of `open`), stay as they are.
   * This model itself if it has no codes; else this model must stay open while the new one is used.
   *
   * `dtype`: what the weights will be read as. Default: each has the dtype to which its library decodes it; with another
   * one, weights are f32 before that rounding.
   */
  async logical(options: LongCallOptions & { readonly dtype?: string | undefined } = {}): Promise<Model> {
    if (this.inspection.schemes === undefined && !this.#asked) return this;
    const dtype = options.dtype ?? "";
    return Model.#opened(this.#link, this.#source, this.#remote, options, (session, again, model) =>
      session.call("logical", { model, dtype }, again ? undefined : options.onProgress));
  }

  /** Reads bytes directly from the source, without the worker; fewer at the end of the file. Not for a folder. */
  async bytes(offset: number, length: number): Promise<Uint8Array> {
    return readBytes(await host(), this.#source, offset, length);
  }

  /** Frees the core's memory for the model and for everything made from it. */
  async close(): Promise<void> {
    await this.#remote.close(this.#link, (session, model) => session.call("close", { model }));
  }

  #place(tensor: string | number): number {
    const at = typeof tensor === "number" ? tensor : this.#index.get(tensor);
    if (at === undefined || this.tensors[at] === undefined) {
      throw WeighbridgeError.of("misuse", `the model has no tensor ${JSON.stringify(tensor)}`);
    }
    return at;
  }

  #with<T>(
    other: Model,
    job: (session: Session, a: number, b: number) => Promise<T>,
    options: CallOptions,
  ): Promise<T> {
    if (other.#link !== this.#link) throw WeighbridgeError.of("misuse", "the models were opened by different workers");
    return this.#link.run(async (session) =>
      job(session, await this.#remote.handle(session), await other.#remote.handle(session)), options.signal);
  }

  #run<T>(job: (session: Session, model: number) => Promise<T>, options: CallOptions): Promise<T> {
    return this.#link.run(async (session) => job(session, await this.#remote.handle(session)), options.signal);
  }
}
