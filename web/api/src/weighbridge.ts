// SPDX-License-Identifier: Apache-2.0
// The entry point. One Weighbridge is one worker with the core, and others that help it; a worker that dies is replaced.
// Models and what is made from them have their own files.

import { coreOptions } from "./core_options.js";
import { hasSimd } from "./core.js";
import { WeighbridgeError } from "./errors.js";
import { Link, Session } from "./link.js";
import { Model } from "./model.js";
import { host } from "./host.js";
import { Output } from "./output.js";
import type { EditArguments } from "./protocol.js";
import { Helpers, sharesOf, verifyTogether } from "./shares.js";
import { mounted, mountedBeside, readBytes } from "./source.js";
import type {
  Admission,
  AdmissionInput,
  CallOptions,
  EditDetails,
  EditOptions,
  Explanation,
  ExplainOptions,
  FileSource,
  FormatInfo,
  OpenOptions,
  Source,
  StartOptions,
  Verdict,
  VerifyOptions,
  Version,
} from "./types.js";

export class Weighbridge {
  readonly #link: Link;
  readonly #helpers: Helpers;
  readonly #workers: number;

  /** The build in use. */
  readonly version: Version;

  /**
   * Called when the worker has died by itself (`memory`, `lost`), after the pending calls have been rejected. You need
   * not do anything: the next call gets a new worker. Not called for a cancelled job, nor for a worker that only helped.
   */
  onlost: (() => void) | null = null;

  private constructor(link: Link, helpers: Helpers, workers: number, version: Version) {
    this.#link = link;
    this.#helpers = helpers;
    this.#workers = workers;
    this.version = version;
    link.onlost = () => this.onlost?.();
  }

  /**
   * Starts a worker and loads the core. Rejects with `lost` if a part cannot be loaded (a wrong `base`, a
   * content-security policy without `'wasm-unsafe-eval'`).
   */
  static async start(options: StartOptions = {}): Promise<Weighbridge> {
    const base = options.base ?? null;
    const platform = await host();
    const workers = options.workers ?? Math.min(platform.processors(), kMaxWorkers);
    if (!(Number.isInteger(workers) && workers >= 1 && workers <= kMaxAsked)) {
      throw WeighbridgeError.of("misuse", `workers must be a whole number from 1 to ${kMaxAsked}`);
    }
    const spawn = () => platform.spawn(base);
    const started = { base: base?.href ?? null, simd: options.simd ?? hasSimd() };
    const link = new Link(spawn, started);
    const helpers = new Helpers((onEnd) => new Session(spawn(), started, onEnd));
    return new Weighbridge(link, helpers, workers, await link.start());
  }

  /** The containers that this build supports. */
  async formats(): Promise<readonly FormatInfo[]> {
    return this.#link.call("formats", null);
  }

  /**
   * Opens a model without loading its tensor data. Rejects with `malformed` or `unsupported`, and the findings, if the
   * file cannot be used; with `io` if it cannot be read.
   */
  async open(source: Source, options: OpenOptions = {}): Promise<Model> {
    return Model.open(this.#link, source, options);
  }

  /**
   * Checks the whole file. Also resolves for an invalid file: `valid` is then false. Several workers share a large .zt
   * file with digests.
   */
  async verify(source: Source, options: VerifyOptions = {}): Promise<Verdict> {
    const platform = await host();
    const args = {
      ...await mountedBeside(platform, source, options.beside),
      options: coreOptions(options),
      share: { index: 0, of: 1 },
    };
    const size = "file" in args.source && options.checks !== "structure" ? await platform.size(args.source.file) : 0;
    const of = sharesOf(args, size, this.#workers);
    if (of === 1) return (await this.#link.call("verify", args, options)).verdict;
    return this.#link.run((session) => verifyTogether(session, this.#helpers, of, args, options), options.signal);
  }

  /** Reads bytes of a file, fewer at its end. Useful around a finding in a file that cannot be opened. */
  async bytes(source: FileSource, offset: number, length: number): Promise<Uint8Array> {
    return readBytes(await host(), source, offset, length);
  }

  /**
   * What the bytes of a file are: the structures, fields, tensors and elements around them. A file whose reader stops
   * early is explained as far as the reader got. Rejects with `misuse` for a range past the end, and for a folder.
   */
  async explain(source: Source, offset: number, length = 1, options: ExplainOptions = {}): Promise<Explanation> {
    const platform = await host();
    const args = {
      ...await mountedBeside(platform, source, options.beside),
      options: coreOptions(options),
      offset,
      length,
    };
    return this.#link.call("explain", args, options);
  }

  /**
   * What an edit of a file's metadata would do, from its header alone: in place, or as a new file if `name` is given or
   * the format cannot be edited in place.
   */
  async planEdit(source: FileSource, options: EditOptions = {}): Promise<EditDetails> {
    const args = await editArguments(source, options, options.name ?? "");
    try {
      return await this.#link.call("planEdit", args, options);
    } catch (error) {
      const inPlace = args.name === "" && error instanceof WeighbridgeError && error.findings[0]?.rule === kNewFile;
      if (!inPlace) throw error;
      return this.#link.call("planEdit", { ...args, name: args.source.name }, options);
    }
  }

  /** The edited file, as a new one: the source does not change. */
  async edit(source: FileSource, options: EditOptions = {}): Promise<{ output: Output; details: EditDetails }> {
    const args = await editArguments(source, options, options.name ?? "");
    const named = args.name === "" ? { ...args, name: args.source.name } : args;
    const { details, ...written } = await this.#link.call("edit", named, options);
    return { output: new Output(written), details };
  }

  /** Checks the records of an SLM artifact. Reports which adapters may be offered, and why others may not. */
  async admission(input: AdmissionInput, options: CallOptions = {}): Promise<Admission> {
    const platform = await host();
    const one = async (file: FileSource | undefined) => (file === undefined ? null : mounted(platform, file));
    const args = {
      artifact: await mounted(platform, input.artifact),
      manifest: await one(input.manifest),
      receipt: await one(input.receipt),
      ledger: await one(input.ledger),
      registry: await one(input.registry),
      adapters: await Promise.all((input.adapters ?? []).map((file) => mounted(platform, file))),
    };
    return this.#link.call("admission", args, options);
  }

  /** The core's memory in bytes. It never shrinks while the worker lives. */
  async memory(): Promise<number> {
    return this.#link.call("memory", null);
  }

  /** Ends the workers. Pending calls reject with `cancelled`, later ones with `misuse`. */
  close(): void {
    this.#helpers.end();
    this.#link.close();
  }
}

/** More would mostly wait for the memory, and each has a core of its own. */
const kMaxWorkers = 4;
const kMaxAsked = 64;

/** The format cannot be edited in place. */
const kNewFile = "misuse/new-file";

async function editArguments(source: FileSource, options: EditOptions, name: string): Promise<EditArguments> {
  const platform = await host();
  return {
    ...await mountedBeside(platform, source, options.beside),
    options: coreOptions(options),
    name,
  };
}
