// SPDX-License-Identifier: Apache-2.0
// Node's host: worker_threads, and files by path.

import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import os from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { Worker } from "node:worker_threads";

import { WeighbridgeError } from "./errors.js";
import type { Host } from "./host.js";
import type { Port } from "./link.js";
import type { Reply, WrittenFile } from "./protocol.js";

function spawn(base: URL | null): Port {
  // The worker must not inherit the program's flags (--input-type, --test).
  const worker = new Worker(new URL("node_worker.js", base ?? import.meta.url), { name: "weighbridge", execArgv: [] });
  worker.unref();
  return {
    post: (request) => worker.postMessage(request),
    listen: (onReply, onDeath) => {
      worker.on("message", (reply: Reply) => onReply(reply));
      worker.on("messageerror", () => onDeath(WeighbridgeError.of("lost", "an answer could not be read")));
      worker.on("error", (error: Error & { code?: string }) => {
        const kind = error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "memory" : "lost";
        onDeath(WeighbridgeError.of(kind, `the worker died: ${error.message}`));
      });
      worker.on("exit", (code) => onDeath(WeighbridgeError.of("lost", `the worker ended with status ${code}`)));
    },
    end: () => void worker.terminate(),
    hold: (on) => (on ? worker.ref() : worker.unref()),
  };
}

function failed(path: string, error: unknown): WeighbridgeError {
  const message = error instanceof Error ? error.message : String(error);
  return new WeighbridgeError({ kind: "io", message, findings: [], path });
}

async function readPath(path: string, offset: number, length: number): Promise<Uint8Array> {
  try {
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      const bytes = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
      let done = 0;
      while (done < bytes.length) {
        const { bytesRead } = await file.read(bytes, done, bytes.length - done, offset + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return bytes.subarray(0, done);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw failed(path, error);
  }
}

/** Writes a temporary file beside the target, syncs it and renames it: a reader sees either the old or the new file. */
async function saveFile(path: string, written: WrittenFile): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}`);
  try {
    const file = await open(temporary, "wx");
    try {
      for (const chunk of written.chunks) {
        await file.writeFile(chunk instanceof Blob ? new Uint8Array(await chunk.arrayBuffer()) : chunk);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder, so nothing more can be done after the rename.
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function save(path: string, written: WrittenFile): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await saveFile(path, written);
  } catch (error) {
    throw failed(path, error);
  }
}

export const nodeHost: Host = {
  spawn,
  path: (path) => ({ name: basename(resolve(path)), file: { kind: "path", path: resolve(path) } }),
  // A worker of Node cannot read a Blob synchronously, as FileReaderSync does in a browser.
  blob: async (blob) => ({ kind: "bytes", bytes: new Uint8Array(await blob.arrayBuffer()) }),
  // Node before 18.14 does not have the first of the two.
  processors: () => os.availableParallelism?.() ?? os.cpus().length,
  size: async (file) => {
    if (file.kind !== "path") return file.kind === "blob" ? file.blob.size : file.bytes.length;
    // The worker says what is wrong with the path.
    return stat(file.path).then(({ size }) => size, () => 0);
  },
  readPath,
  save,
};
