// SPDX-License-Identifier: Apache-2.0
// An open model, as the page's side knows it: the list of its tensors, and how it was opened, so that a fresh worker
// can open it again.

import { Embedder } from "./embedder.js";
import { WeighbridgeError } from "./errors.js";
import { Generator } from "./generator.js";
import { host } from "./host.js";
import type { Link, Session } from "./link.js";
import { Output } from "./output.js";
import { Plan } from "./plan.js";
import type { MountedSource, OpenArguments, Result } from "./protocol.js";
import { known, Remote } from "./remote.js";
import { mounted, readBytes } from "./source.js";
import { typedArray } from "./typed_array.js";
import type {
  Attributes,
  CallOptions,
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
  readonly #index = new Map<string, number>();

  /** Everything that the core says about the file (docs/schemas/inspect.json). */
  readonly inspection: Inspection;

  private constructor(link: Link, source: Source, remote: Remote, inspection: Inspection) {
    this.#link = link;
    this.#source = source;
    this.#remote = remote;
    this.inspection = inspection;
    inspection.tensors.forEach((tensor, index) => {
      if (!this.#index.has(tensor.name)) this.#index.set(tensor.name, index);
    });
  }

  /** @internal */
  static async open(link: Link, source: Source, options: OpenOptions): Promise<Model> {
    const platform = await host();
    const args: OpenArguments = {
      source: await mounted(platform, source),
      beside: await Promise.all((options.beside ?? []).map((file) => mounted(platform, file))),
      format: options.format ?? "",
      structure: options.checks === "structure",
      tokenizer: options.tokenizer === undefined ? null : await mounted(platform, options.tokenizer),
    };
    return Model.#opened(link, source, null, options, (session, again) =>
      // What was checked once is not read again only because the worker is another one.
      again ? session.call("open", { ...args, structure: true }) : session.call("open", args, options.onProgress));
  }

  static async #opened(
    link: Link,
    source: Source,
    parent: Remote | null,
    options: LongCallOptions,
    open: (session: Session, again: boolean, parent: number) => Promise<Result<"open">>,
  ): Promise<Model> {
    let first: Inspection | undefined;
    const remote = new Remote(parent, async (session, above) => {
      const { model, inspection } = await open(session, first !== undefined, above);
      first ??= inspection;
      return model;
    });
    await link.run((session) => remote.handle(session), options.signal);
    return new Model(link, source, remote, known(first));
  }

  get format(): string {
    return this.inspection.format;
  }
  get version(): string | null {
    return this.inspection.version;
  }
  /** Bytes; for a folder, of all its files. */
  get fileSize(): number {
    return this.inspection.file_size;
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
  /** Warnings: what is wrong with a usable file. */
  get findings(): readonly Finding[] {
    return this.inspection.findings ?? [];
  }

  /** The digest of the content; without `names`, one that does not depend on how the tensors are called. */
  async hash(options: LongCallOptions & { readonly names?: boolean | undefined } = {}): Promise<Hash> {
    return this.#run((session, model) =>
      session.call("hash", { model, names: options.names ?? true }, options.onProgress), options);
  }

  /** A tensor is given by its name, or by its place in `tensors` where names are not unique. */
  async statistics(tensor: string | number, options: LongCallOptions = {}): Promise<Statistics> {
    const args = { tensor: this.#place(tensor) };
    return this.#run((session, model) => session.call("statistics", { model, ...args }, options.onProgress), options);
  }

  async histogram(tensor: string | number, bins = 64, options: LongCallOptions = {}): Promise<Histogram> {
    const args = { tensor: this.#place(tensor), bins };
    return this.#run((session, model) => session.call("histogram", { model, ...args }, options.onProgress), options);
  }

  /**
   * Rows of the slowest dimension as f32, one after the other; a scalar is one row of one element. Rows outside the
   * tensor are `misuse`.
   */
  async rows(tensor: string | number, first: number, count: number, options: CallOptions = {}): Promise<Float32Array> {
    const args = { tensor: this.#place(tensor), first, count };
    return this.#run((session, model) => session.call("rows", { model, ...args }), options);
  }

  /** A whole tensor, at most 1 GiB, in its own dtype or in the one asked for. */
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
    // A tensor's name is not a file's name: it may hold slashes, or be empty.
    const name = `${(this.tensors[at]?.name ?? "").replace(/[^\w.-]+/g, "_").slice(0, 100) || "tensor"}.npy`;
    const args = { tensor: at, name };
    const written = await this.#run((session, model) =>
      session.call("extract", { model, ...args }, options.onProgress), options);
    return new Output(written);
  }

  /** What writing the model in another format would change and lose. Nothing is written yet. */
  async plan(format: string, options: PlanOptions = {}): Promise<Plan> {
    return Plan.make(this.#link, this.#remote, this.inspection.path, format, options);
  }

  /** Needs a tokenizer: the file's own, or the one that it was opened with. */
  async tokenize(
    text: string,
    options: CallOptions & { readonly special?: boolean | undefined } = {},
  ): Promise<Tokens> {
    const args = { text, special: options.special ?? true };
    return this.#run((session, model) => session.call("tokenize", { model, ...args }), options);
  }

  /** For a BERT: texts to vectors. */
  async embedder(options: EmbedderOptions = {}): Promise<Embedder> {
    return Embedder.make(this.#link, this.#remote, options);
  }

  /** For a language model. */
  async generator(options: GeneratorOptions = {}): Promise<Generator> {
    return Generator.make(this.#link, this.#remote, options);
  }

  /**
   * The model with adapter packages added. This one stays as it is, and must stay open for as long as the new one is
   * used.
   */
  async adapt(adapters: readonly FileSource[], options: LongCallOptions = {}): Promise<Model> {
    const platform = await host();
    const files: MountedSource[] = await Promise.all(adapters.map((file) => mounted(platform, file)));
    return Model.#opened(this.#link, this.#source, this.#remote, options, (session, again, model) =>
      session.call("adapt", { model, adapters: files }, again ? undefined : options.onProgress));
  }

  /** Bytes of the file, fewer at its end, straight from the source: the worker is not asked. Not for a folder. */
  async bytes(offset: number, length: number): Promise<Uint8Array> {
    return readBytes(await host(), this.#source, offset, length);
  }

  /** Frees what the core holds for the model and for all that was made of it. */
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

  #run<T>(job: (session: Session, model: number) => Promise<T>, options: CallOptions): Promise<T> {
    return this.#link.run(async (session) => job(session, await this.#remote.handle(session)), options.signal);
  }
}
