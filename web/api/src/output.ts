// SPDX-License-Identifier: Apache-2.0
// A file or folder that the core wrote, held in pieces rather than in one large buffer.

import { WeighbridgeError } from "./errors.js";
import { host } from "./host.js";
import type { WrittenFile, WrittenOutput } from "./protocol.js";

export class Output {
  readonly #written: WrittenOutput;

  /** @internal */
  constructor(written: WrittenOutput) {
    this.#written = written;
  }

  /** The file's name, for a download. */
  get name(): string {
    return this.#written.name;
  }
  /** The size in bytes; for a folder, of all its files. */
  get size(): number {
    const { files, folder } = this.#written;
    return folder ? files.reduce((sum, file) => sum + file.size, 0) : (files[0]?.size ?? 0);
  }
  /** Whether it is a folder; use `files` then, not `blob` and `bytes`. */
  get isFolder(): boolean {
    return this.#written.folder;
  }
  /**
   * All files: those of a folder, each named by its path inside the folder; or the file itself, followed by its sidecar
   * files (STB keeps the names in `NAME.khm.json`), which belong in the same folder.
   */
  get files(): readonly Output[] {
    return this.#written.files.map((file) => new Output({ name: file.path, folder: false, files: [file] }));
  }

  /** The file's bytes as a Blob, without a copy. */
  async blob(): Promise<Blob> {
    return new Blob(this.#only().chunks as BlobPart[], { type: "application/octet-stream" });
  }

  /** The file's bytes in one array. For large files prefer `blob` or `save`. */
  async bytes(): Promise<Uint8Array> {
    const file = this.#only();
    const all = new Uint8Array(file.size);
    let at = 0;
    for (const chunk of file.chunks) {
      const bytes = chunk instanceof Blob ? new Uint8Array(await chunk.arrayBuffer()) : chunk;
      all.set(bytes, at);
      at += bytes.length;
    }
    return all;
  }

  /**
   * Node only: writes the file and its sidecar files, or the folder, to a path. Replaces existing files; after a power
   * failure each file is either the old or the complete new one. Creates missing folders. Rejects with `io`. Rejects
   * with `misuse` in a browser, and if sidecar files contain another file name than the path has: then set `name` in
   * the plan options.
   */
  async save(path: string): Promise<void> {
    const platform = await host();
    const { files, folder, name } = this.#written;
    const at = path.search(/[^/\\]*$/);
    if (!folder && files.length > 1 && path.slice(at) !== name) {
      const message = `${files[1]?.path} names ${name}: save it under that name, or plan with another`;
      throw WeighbridgeError.of("misuse", message);
    }
    for (const file of files) {
      const target = folder ? `${path}/${file.path}` : `${path.slice(0, at)}${file.path}`;
      await platform.save(files.length === 1 && !folder ? path : target, file);
    }
  }

  #only(): WrittenFile {
    const file = this.#written.files[0];
    if (this.isFolder || file === undefined) {
      throw WeighbridgeError.of("misuse", `${this.name} is a folder: take its files one by one`);
    }
    return file;
  }
}
