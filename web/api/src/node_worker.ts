// SPDX-License-Identifier: Apache-2.0
// The worker in Node: reads files by path, and sees their neighbors as the command does.

import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parentPort } from "node:worker_threads";

import type { ByteFile } from "./byte_file.js";
import type { CoreFactory } from "./core.js";
import { startCore } from "./core.js";
import { coreFiles } from "./core_files.js";
import type { Entry } from "./files.js";
import { Directory, InputFile } from "./files.js";
import type { Request } from "./protocol.js";
import { Server } from "./server.js";

/** Opens the file at the first read. */
class PathFile implements ByteFile {
  /** A read is one system call; reading ahead more than this is not worth the extra copy. */
  readonly readAhead = 64 * 1024;
  readonly size: number;
  readonly #path: string;
  #descriptor: number | undefined;

  constructor(path: string, size: number) {
    this.#path = path;
    this.size = size;
  }

  readInto(target: Uint8Array, offset: number): void {
    this.#descriptor ??= openSync(this.#path, "r");
    for (let done = 0; done < target.length; ) {
      const count = readSync(this.#descriptor, target, done, target.length - done, offset + done);
      if (count === 0) throw new Error("the file is shorter than it was");
      done += count;
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

function outside(folder: string): Directory {
  return new Directory({
    find: (name): Entry | undefined => {
      const path = join(folder, name);
      const status = statSync(path, { throwIfNoEntry: false });
      if (status?.isDirectory() === true) return outside(path);
      return status?.isFile() === true ? new InputFile(new PathFile(path, status.size)) : undefined;
    },
    names: () => readdirSync(folder),
  });
}

async function loadCore(base: string | null, simd: boolean) {
  const { script, binary } = coreFiles(base, simd);
  // The core is built for browser workers and expects self.location. Its .wasm file is passed in rather than fetched.
  Object.assign(globalThis, { self: { location: script } });
  const loaded = (await import(script.href)) as { default: CoreFactory };
  return startCore(loaded.default, new Uint8Array(readFileSync(binary)));
}

const port = parentPort;
if (port === null) throw new Error("node_worker.js runs in a worker thread only");

const server = new Server({
  readers: {
    blob: () => {
      throw new Error("a Blob reaches a worker of Node as its bytes");
    },
    path: (path) => ({ folder: outside(dirname(path)), name: basename(path) }),
  },
  store: null,
  loadCore,
  post: (reply, transfer) => port.postMessage(reply, transfer),
  pause: () => new Promise((resolve) => setImmediate(resolve)),
});
port.on("message", (request: Request) => void server.hear(request));
