// SPDX-License-Identifier: Apache-2.0
// The worker in a browser: reads Files with FileReaderSync, and stores output in Blobs.

import type { ByteFile } from "./byte_file.js";
import type { CoreFactory } from "./core.js";
import { startCore } from "./core.js";
import { coreFiles } from "./core_files.js";
import { CoreFailure } from "./faults.js";
import type { Reply, Request } from "./protocol.js";
import { Server } from "./server.js";

/** Members of a dedicated worker that TypeScript's DOM library does not declare. */
declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}
const scope = globalThis as unknown as {
  postMessage(reply: Reply, transfer: ArrayBuffer[]): void;
  onmessage: ((event: MessageEvent<Request>) => void) | null;
};

const reader = new FileReaderSync();

class BlobFile implements ByteFile {
  readonly readAhead = 4 * 1024 * 1024;
  readonly size: number;
  readonly #blob: Blob;

  constructor(blob: Blob) {
    this.#blob = blob;
    this.size = blob.size;
  }

  readInto(target: Uint8Array, offset: number): void {
    const bytes = reader.readAsArrayBuffer(this.#blob.slice(offset, offset + target.length));
    if (bytes.byteLength !== target.length) throw new Error("the file is shorter than it was");
    target.set(new Uint8Array(bytes));
  }
}

async function loadCore(base: string | null, simd: boolean) {
  const { script, binary } = coreFiles(base, simd);
  const loaded = (await import(/* webpackIgnore: true */ /* @vite-ignore */ script.href)) as { default: CoreFactory };
  const response = await fetch(binary);
  if (!response.ok) throw new Error(`${binary.pathname}: status ${response.status}`);
  return startCore(loaded.default, new Uint8Array(await response.arrayBuffer()));
}

// A message to itself is handled after the waiting messages; a timer would wait four milliseconds longer.
const channel = new MessageChannel();
function pause(): Promise<void> {
  return new Promise((resolve) => {
    channel.port1.onmessage = () => resolve();
    channel.port2.postMessage(null);
  });
}

const server = new Server({
  readers: {
    blob: (blob) => new BlobFile(blob),
    path: (path) => {
      const message = "a path needs Node: in a browser give a File";
      throw new CoreFailure({ kind: "misuse", message, findings: [], path }, false);
    },
  },
  store: {
    put: (bytes) => new Blob([bytes as Uint8Array<ArrayBuffer>]),
    get: (blob) => new Uint8Array(reader.readAsArrayBuffer(blob)),
  },
  loadCore,
  post: (reply, transfer) => scope.postMessage(reply, transfer),
  pause,
});
scope.onmessage = (event) => void server.hear(event.data);
