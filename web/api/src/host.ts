// SPDX-License-Identifier: Apache-2.0
// What differs between a browser and Node outside the worker. Each has its own module, so that a browser never loads
// Node's.

import type { Port } from "./link.js";
import type { FileBytes, WrittenFile } from "./protocol.js";

export interface Host {
  /** Starts a worker from the package's folder at `base`; null: from where this module is. */
  spawn(base: URL | null): Port;
  /** Turns a path into something that the worker can open. Throws `misuse` in a browser. */
  path(path: string): { readonly name: string; readonly file: FileBytes };
  /** A Blob in the form that a worker of this host can read synchronously. */
  blob(blob: Blob): Promise<FileBytes>;
  /** How many threads run at once on this machine. */
  processors(): number;
  /** The size of what a worker would read, in bytes; 0 if that cannot be told. */
  size(file: FileBytes): Promise<number>;
  readPath(path: string, offset: number, length: number): Promise<Uint8Array>;
  /** Writes one file, and creates its folder if necessary. */
  save(path: string, written: WrittenFile): Promise<void>;
}

let loaded: Promise<Host> | undefined;

export function host(): Promise<Host> {
  // A page may have a `process` of its own, and Electron's pages have Node's.
  const isNode = typeof document === "undefined" && typeof process === "object" && process.versions?.node !== undefined;
  loaded ??= isNode
    ? import("./host_node.js").then((module) => module.nodeHost)
    : import("./host_browser.js").then((module) => module.browserHost);
  return loaded;
}
