// SPDX-License-Identifier: Apache-2.0
// The state of the page: the files of this visit, which of them are models, and what is known about each. Announces
// changes as events; draws nothing.

import type { FileSource, Folder, Model, NamedBlob, Source, Verdict } from "./api.js";
import { WeighbridgeError } from "./api.js";
import { engine } from "./engine.js";
import type { JobOptions } from "./job.js";
import { INDEX, roleOf, type Role } from "./roles.js";

/** A folder that was dropped or chosen. */
export interface DroppedFolder extends Folder {
  readonly files: readonly NamedBlob[];
}

/** A file of the visit, or a folder of a model. */
export interface Entry {
  name: string;
  size: number;
  role: Role;
  source: File | DroppedFolder;
  model: Model | null;
  /** The model with the numbers of quantized weights, as people see it; `model` itself if there are none. */
  numbers: Model | null;
  /** What the user said that the files leave open of quantization schemes. */
  scheme: readonly string[];
  /** Why it could not be opened. */
  failure: WeighbridgeError | null;
  verdict: Verdict | null;
}

export const isFolder = (source: Source): source is Folder => typeof source === "object" && "files" in source;

/** Files up to this size are checked in full automatically. */
export const VERIFIED_AT_ONCE = 256 * 2 ** 20;

/** One sentence for a thrown value that is not a finding. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export const wasCancelled = (error: unknown): boolean =>
  error instanceof WeighbridgeError && error.kind === "cancelled";

export class Session extends EventTarget {
  readonly entries: Entry[] = [];
  current: Entry | null = null;
  /** The model that the current one is compared with. */
  second: Entry | null = null;
  /** While two models are compared, added files do not take the place of the current one. */
  comparing = false;
  /** The adapter packages that are switched on for the current model. */
  adapters: readonly File[] = [];

  /** Adds files; the first model becomes the current one. A file replaces one with the same name. */
  async add(files: File[], folder: DroppedFolder | null): Promise<void> {
    const added: Entry[] = [];
    if (folder) {
      const size = folder.files.reduce((sum, { size: bytes }) => sum + bytes, 0);
      added.push(blank(folder.name, size, "model", folder));
    }
    for (const file of files) added.push(blank(file.name, file.size, await roleOf(file), file));
    if (added.length === 0) return;
    for (const entry of added) {
      const at = this.entries.findIndex((other) => other.name === entry.name);
      if (at >= 0) this.#forget(this.entries.splice(at, 1)[0]);
      this.entries.push(entry);
    }
    // The new files may change how open models are read.
    for (const entry of this.entries) this.#forget(entry);
    const model = added.find((entry) => INDEX.test(entry.name)) ?? added.find((entry) => entry.role === "model");
    const kept = this.comparing && this.current !== null && this.entries.includes(this.current) ? this.current : null;
    if (kept && model) this.second = model;
    else this.current = model ?? this.current ?? added.find((entry) => entry.role === "adapter") ?? added[0] ?? null;
    this.adapters = [];
    this.dispatchEvent(new Event("change"));
  }

  /** The models that the current one can be compared with, the last one that was added first. */
  others(): Entry[] {
    return this.entries.filter((entry) => entry !== this.current && entry.role === "model").reverse();
  }

  choose(entry: Entry): void {
    this.current = entry;
    this.adapters = [];
    this.dispatchEvent(new Event("change"));
  }

  /** Forgets what is known about an entry and opens it again. */
  again(entry: Entry): void {
    this.#forget(entry);
    this.choose(entry);
  }

  remove(entry: Entry): void {
    this.entries.splice(this.entries.indexOf(entry), 1);
    this.#forget(entry);
    if (this.current === entry) this.current = this.entries.find((other) => other.role === "model") ?? null;
    if (!this.current) this.clear();
    else this.dispatchEvent(new Event("change"));
  }

  clear(): void {
    for (const entry of this.entries) this.#forget(entry);
    this.entries.length = 0;
    this.current = null;
    this.second = null;
    this.dispatchEvent(new Event("change"));
  }

  /** Switches these adapter packages on, in this order, and all others off. */
  adapt(adapters: readonly File[]): void {
    this.adapters = adapters;
    this.dispatchEvent(new Event("adapters"));
  }

  /** The file of a role that fits the current model best: one that begins with its name, or any other. */
  companion(role: Role): File | undefined {
    const stem = this.current?.name.replace(/\.[^.]*$/, "") ?? "";
    const files = this.ofRole(role);
    return files.find((file) => file.name.startsWith(stem)) ?? files[0];
  }

  ofRole(role: Role): File[] {
    return this.entries.flatMap((entry) => (entry.role === role && entry.source instanceof File ? [entry.source] : []));
  }

  /** All other files, for formats that read sidecar files. */
  beside(entry: Entry): FileSource[] {
    return this.entries.flatMap((other) => (other !== entry && other.source instanceof File ? [other.source] : []));
  }

  async open(entry: Entry, options: JobOptions): Promise<void> {
    try {
      await this.#read(entry, entry.scheme, options);
    } catch (error) {
      if (!(error instanceof WeighbridgeError) || error.kind === "cancelled") throw error;
      entry.failure = error;
    }
  }

  /** Opens the entry again with what its files leave open. If the core refuses that, the model stays as it is. */
  async answer(entry: Entry, scheme: readonly string[], options: JobOptions): Promise<void> {
    await this.#read(entry, scheme, options);
    entry.scheme = scheme;
    this.choose(entry);
  }

  /** Opens with structure checks only, which are as fast for a large file; `verify` checks the rest. */
  async #read(entry: Entry, scheme: readonly string[], options: JobOptions): Promise<void> {
    const tokenizer = /\.bin$/i.test(entry.name) ? this.companion("tokenizer") : undefined;
    const wb = await engine();
    const model = await wb.open(entry.source, { ...options, checks: "structure", tokenizer,
      scheme, beside: this.beside(entry) });
    // What completes codes may be unreadable: then the codes are shown, and the check says why.
    let numbers = await model.logical(options).catch((error: unknown) => {
      if (scheme.length === 0 && !wasCancelled(error)) return model;
      void model.close();
      throw error;
    });
    if (numbers !== model && !numbers.tensors.some(({ stored }) => stored)) {
      void numbers.close(); // nothing was decoded
      numbers = model;
    }
    this.#forget(entry);
    if (this.entries.includes(entry)) Object.assign(entry, { model, numbers });
    else void model.close(); // removed in the meantime
  }

  async verify(entry: Entry, options: JobOptions): Promise<Verdict> {
    const wb = await engine();
    entry.verdict = await wb.verify(entry.source, { ...options, scheme: entry.scheme, beside: this.beside(entry) });
    return entry.verdict;
  }

  #forget(entry: Entry | undefined): void {
    if (!entry) return;
    if (this.second === entry && !this.entries.includes(entry)) this.second = null;
    void entry.model?.close();
    entry.model = null;
    entry.numbers = null;
    entry.failure = null;
    entry.verdict = null;
  }
}

function blank(name: string, size: number, role: Role, source: Entry["source"]): Entry {
  return { name, size, role, source, model: null, numbers: null, scheme: [], failure: null, verdict: null };
}

export const session = new Session();
