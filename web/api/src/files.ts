// SPDX-License-Identifier: Apache-2.0
// The files that the core sees: a tree of read-only inputs and chunked outputs, as a file system for Emscripten 3.1.6.
// Inputs are ByteFiles (byte_file.ts), outputs are chunks (chunks.ts).

import type { ByteFile } from "./byte_file.js";
import { ReadAhead } from "./byte_file.js";
import type { ChunkStore } from "./chunks.js";
import { Chunks } from "./chunks.js";
import type { EmscriptenFs, FsNode } from "./core.js";

/** Error numbers as Emscripten's libc has them (WASI's). */
const kEexist = 20;
const kEinval = 28;
const kEio = 29;
const kEnoent = 44;
const kEnospc = 51;
const kEnotempty = 55;
const kErofs = 69;

const kRegular = 0o100000;
const kFolder = 0o040000;
const kTypeMask = 0o170000;

/** The modification time of every file: no result may depend on when a file was saved. */
const kTime = new Date(0);

export class InputFile {
  readonly kind = "input";
  readonly size: number;
  readonly bytes: ReadAhead;
  node: FsNode<Entry> | undefined;

  constructor(file: ByteFile) {
    this.size = file.size;
    this.bytes = new ReadAhead(file);
  }
}

export class OutputFile {
  readonly kind = "output";
  readonly bytes: Chunks;
  node: FsNode<Entry> | undefined;

  constructor(store: ChunkStore | null) {
    this.bytes = new Chunks(store);
  }

  get size(): number {
    return this.bytes.size;
  }
}

/** A folder of the host, whose files can be opened without listing it first. */
export interface OutsideFolder {
  find(name: string): Entry | undefined;
  names(): readonly string[];
}

export class Directory {
  readonly kind = "directory";
  readonly size = 4096;
  readonly entries = new Map<string, Entry>();
  readonly outside: OutsideFolder | null;
  node: FsNode<Entry> | undefined;

  constructor(outside: OutsideFolder | null = null) {
    this.outside = outside;
  }

  find(name: string): Entry | undefined {
    const known = this.entries.get(name);
    if (known !== undefined) return known;
    const found = this.outside?.find(name);
    if (found !== undefined) this.entries.set(name, found);
    return found;
  }

  names(): string[] {
    return [...new Set([...this.entries.keys(), ...(this.outside?.names() ?? [])])];
  }
}

export type Entry = InputFile | OutputFile | Directory;

interface Stream {
  readonly node: FsNode<Entry>;
  readonly position: number;
}

/** A mounted tree. Add and remove files in `root.entries`; call `forget` for removed ones. */
export class FileTree {
  readonly root = new Directory();
  readonly #fs: EmscriptenFs;
  readonly #store: ChunkStore | null;
  readonly #writable: boolean;

  constructor(fs: EmscriptenFs, mountpoint: string, writable: boolean, store: ChunkStore | null) {
    this.#fs = fs;
    this.#writable = writable;
    this.#store = store;
    fs.mkdir(mountpoint);
    fs.mount({ mount: () => this.#node(null, "/", this.root) }, {}, mountpoint);
  }

  /** Makes Emscripten drop its nodes of an entry and of all below it, and closes the inputs. */
  forget(entry: Entry): void {
    if (entry.kind === "directory") {
      for (const below of entry.entries.values()) this.forget(below);
    }
    if (entry.kind === "input") entry.bytes.close();
    if (entry.node !== undefined) this.#fs.destroyNode(entry.node);
    entry.node = undefined;
  }

  #node(parent: FsNode<Entry> | null, name: string, entry: Entry): FsNode<Entry> {
    const write = this.#writable ? 0o222 : 0;
    const mode = (entry.kind === "directory" ? kFolder | 0o555 : kRegular | 0o444) | write;
    const node = this.#fs.createNode(parent, name, mode, 0) as FsNode<Entry>;
    node.entry = entry;
    node.node_ops = this.#nodeOps;
    node.stream_ops = this.#streamOps;
    entry.node = node;
    return node;
  }

  #fail(errno: number): Error {
    return new this.#fs.ErrnoError(errno);
  }

  /** A folder that may be changed. */
  #changeable(node: FsNode<Entry>): Directory {
    if (!this.#writable || node.entry.kind !== "directory") throw this.#fail(kErofs);
    return node.entry;
  }

  #output(node: FsNode<Entry>): Chunks {
    if (node.entry.kind !== "output") throw this.#fail(kErofs);
    return node.entry.bytes;
  }

  /** Runs code that accesses bytes. Turns any exception into an error number, as none may pass through the core. */
  #guard<T>(errno: number, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw error instanceof this.#fs.ErrnoError ? error : this.#fail(errno);
    }
  }

  readonly #nodeOps = {
    getattr: (node: FsNode<Entry>) => {
      const { size } = node.entry;
      return {
        dev: 1,
        ino: node.id,
        mode: node.mode,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size,
        atime: kTime,
        mtime: kTime,
        ctime: kTime,
        blksize: 4096,
        blocks: Math.ceil(size / 4096),
      };
    },
    setattr: (node: FsNode<Entry>, change: { mode?: number; size?: number }) => {
      const { mode, size } = change;
      if (mode !== undefined) node.mode = mode;
      if (size !== undefined) this.#guard(kEnospc, () => this.#output(node).resize(size));
    },
    lookup: (parent: FsNode<Entry>, name: string) => {
      const entry = parent.entry.kind === "directory" ? this.#guard(kEio, () => this.#find(parent, name)) : undefined;
      if (entry === undefined) throw this.#fail(kEnoent);
      return this.#node(parent, name, entry);
    },
    mknod: (parent: FsNode<Entry>, name: string, mode: number) => {
      const folder = this.#changeable(parent);
      const isFolder = (mode & kTypeMask) === kFolder;
      if (!isFolder && (mode & kTypeMask) !== kRegular) throw this.#fail(kEinval);
      if (folder.entries.has(name)) throw this.#fail(kEexist);
      const entry = isFolder ? new Directory() : new OutputFile(this.#store);
      folder.entries.set(name, entry);
      return this.#node(parent, name, entry);
    },
    rename: (node: FsNode<Entry>, parent: FsNode<Entry>, name: string) => {
      const target = this.#changeable(parent);
      const replaced = target.entries.get(name);
      if (replaced?.kind === "directory" && replaced.entries.size > 0) throw this.#fail(kEnotempty);
      if (replaced !== undefined) this.forget(replaced);
      this.#changeable(node.parent).entries.delete(node.name);
      target.entries.set(name, node.entry);
      node.name = name;
      node.parent = parent;
    },
    unlink: (parent: FsNode<Entry>, name: string) => {
      this.#changeable(parent).entries.delete(name);
    },
    rmdir: (parent: FsNode<Entry>, name: string) => {
      const folder = this.#changeable(parent);
      const removed = folder.entries.get(name);
      if (removed?.kind === "directory" && removed.entries.size > 0) throw this.#fail(kEnotempty);
      folder.entries.delete(name);
    },
    readdir: (node: FsNode<Entry>) => {
      const { entry } = node;
      const names = entry.kind === "directory" ? this.#guard(kEio, () => entry.names()) : [];
      return [".", "..", ...names];
    },
  };

  readonly #streamOps = {
    llseek: (stream: Stream, offset: number, whence: number) => {
      const from = whence === 1 ? stream.position : whence === 2 ? stream.node.entry.size : 0;
      if (from + offset < 0) throw this.#fail(kEinval);
      return from + offset;
    },
    read: (stream: Stream, heap: Uint8Array, at: number, length: number, position: number) => {
      const { entry } = stream.node;
      if (entry.kind === "directory") throw this.#fail(kEinval);
      return this.#guard(kEio, () => entry.bytes.read(bytesOf(heap, at, length), position));
    },
    write: (stream: Stream, heap: Uint8Array, at: number, length: number, position: number) => {
      const output = this.#output(stream.node);
      this.#guard(kEnospc, () => output.write(bytesOf(heap, at, length), position));
      return length;
    },
    allocate: (stream: Stream, offset: number, length: number) => {
      const output = this.#output(stream.node);
      this.#guard(kEnospc, () => output.resize(Math.max(output.size, offset + length)));
    },
  };

  #find(parent: FsNode<Entry>, name: string): Entry | undefined {
    return parent.entry.kind === "directory" ? parent.entry.find(name) : undefined;
  }
}

/** Emscripten passes its heap as signed bytes. */
function bytesOf(heap: Uint8Array, at: number, length: number): Uint8Array {
  return new Uint8Array(heap.buffer, heap.byteOffset + at, length);
}
