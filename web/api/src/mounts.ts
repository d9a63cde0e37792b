// SPDX-License-Identifier: Apache-2.0
// Mounts sources and outputs in the core's two trees: /in/<number>/ for inputs, /out/<number>/ for outputs.

import { MemoryFile } from "./byte_file.js";
import type { ByteFile } from "./byte_file.js";
import type { ChunkStore } from "./chunks.js";
import type { EmscriptenFs } from "./core.js";
import { CoreFailure } from "./faults.js";
import { Directory, FileTree, InputFile } from "./files.js";
import type { Entry } from "./files.js";
import type { FileBytes, MountedSource, WrittenFile, WrittenOutput } from "./protocol.js";

/** Reads sources that only some platforms support. Both members throw on the others. */
export interface Readers {
  blob(blob: Blob): ByteFile;
  /** The folder of a path, and the last part of the path. */
  path(path: string): { readonly folder: Directory; readonly name: string };
}

/** A mounted source. */
export interface Mounted {
  readonly path: string;
  readonly name: string;
  /** The size in bytes; for a folder, of all named files. */
  readonly size: number;
  /** Doing it twice does nothing. */
  unmount(): void;
}

/** A mounted folder for an output. */
export interface Place {
  readonly path: string;
  /** The files that were written. */
  take(): WrittenOutput;
  /** Unmounts it and drops any files that were not taken. */
  leave(): void;
}

export class Mounts {
  readonly #readers: Readers;
  readonly #inputs: FileTree;
  readonly #outputs: FileTree;
  #next = 1;

  constructor(fs: EmscriptenFs, readers: Readers, store: ChunkStore | null) {
    this.#readers = readers;
    this.#inputs = new FileTree(fs, "/in", false, null);
    this.#outputs = new FileTree(fs, "/out", true, store);
  }

  mount(source: MountedSource, beside: readonly MountedSource[] = []): Mounted {
    const place = String(this.#next++);
    const folder = "file" in source && source.file.kind === "path" ? this.#outside(source.file.path) : new Directory();
    for (const one of [...beside, source]) {
      const entry = folder.outside !== null && one === source ? folder.find(one.name) : this.#entry(one);
      if (entry === undefined) throw ioFailure(one.name, `there is no ${one.name}`);
      folder.entries.set(one.name, entry);
    }
    this.#inputs.root.entries.set(place, folder);
    const path = `/in/${place}/${source.name}`;
    const unmount = () => {
      if (!this.#inputs.root.entries.has(place)) return;
      this.#inputs.root.entries.delete(place);
      this.#inputs.forget(folder);
    };
    return { path, name: source.name, size: sizeOf(folder.entries.get(source.name)), unmount };
  }

  output(name: string): Place {
    const place = String(this.#next++);
    const folder = new Directory();
    this.#outputs.root.entries.set(place, folder);
    const take = (): WrittenOutput => {
      const entry = folder.entries.get(name);
      if (entry === undefined) throw ioFailure(name, `${name} was not written`);
      if (entry.kind === "directory") return { name, folder: true, files: [...written(entry, "")] };
      // A format may write sidecar files: STB its names, a checkpoint its tokenizer.
      const beside = [...folder.entries].filter(([other]) => other !== name);
      const all = [[name, entry] as const, ...beside];
      return { name, folder: false, files: all.flatMap(([path, one]) => [...written(one, path)]) };
    };
    const leave = () => {
      this.#outputs.root.entries.delete(place);
      this.#outputs.forget(folder);
    };
    return { path: `/out/${place}/${name}`, take, leave };
  }

  #entry(source: MountedSource): Entry {
    if ("file" in source) return this.#file(source.name, source.file);
    const folder = new Directory();
    for (const { path, file } of source.files) {
      const names = path.split("/");
      const name = names.pop() ?? "";
      let below = folder;
      for (const step of names) {
        const next = below.entries.get(step) ?? new Directory();
        if (next.kind !== "directory") throw ioFailure(path, `${path}: a file stands where a folder is needed`);
        below.entries.set(step, next);
        below = next;
      }
      below.entries.set(name, this.#file(name, file));
    }
    return folder;
  }

  #file(name: string, file: FileBytes): Entry {
    if (file.kind === "bytes") return new InputFile(new MemoryFile(file.bytes));
    if (file.kind === "blob") return new InputFile(this.#readers.blob(file.blob));
    const found = this.#find(file.path);
    if (found === undefined) throw ioFailure(name, `there is no ${file.path}`);
    return found;
  }

  #find(path: string): Entry | undefined {
    const { folder, name } = this.#readers.path(path);
    return folder.find(name);
  }

  #outside(path: string): Directory {
    return this.#readers.path(path).folder;
  }
}

function ioFailure(path: string, message: string): CoreFailure {
  return new CoreFailure({ kind: "io", message, findings: [], path }, false);
}

function sizeOf(entry: Entry | undefined): number {
  if (entry?.kind !== "directory") return entry?.size ?? 0;
  return entry.names().reduce((sum, name) => sum + sizeOf(entry.find(name)), 0);
}

function* written(entry: Entry, path: string): Generator<WrittenFile> {
  if (entry.kind === "output") {
    const { size } = entry;
    yield { path, size, chunks: entry.bytes.take() };
  } else if (entry.kind === "directory") {
    for (const [name, below] of entry.entries) yield* written(below, path === "" ? name : `${path}/${name}`);
  }
}
