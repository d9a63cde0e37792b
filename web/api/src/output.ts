// SPDX-License-Identifier: Apache-2.0
// A file, or a folder of files, that the core wrote: held as pieces, never as one big buffer, until it is taken.

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
  /** Bytes of the file; of a folder, of all its files. */
  get size(): number {
    const { files, folder } = this.#written;
    return folder ? files.reduce((sum, file) => sum + file.size, 0) : (files[0]?.size ?? 0);
  }
  /** Whether it is a folder: then `files` is what can be taken, not `blob` and `bytes`. */
  get isFolder(): boolean {
    return this.#written.folder;
  }
  /**
   * All that was written: a folder's files, each named by its path inside the folder; or the file itself, and after it
   * those that its format puts beside it (STB keeps the names in `NAME.khm.json`), which belong into the same folder.
   */
  get files(): readonly Output[] {
    return this.#written.files.map((file) => new Output({ name: file.path, folder: false, files: [file] }));
  }

  /** The file's bytes as a Blob, without copying them together. */
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
   * Node: writes the file with those beside it, or the folder, to a path. What stands there is replaced; each file is
   * the old one or the whole new one whenever the power goes. A folder that is missing is made. Rejects with `io`; with
   * `misuse` in a browser, and where files beside it name it otherwise than the path does: then give the plan the
   * `name`.
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
