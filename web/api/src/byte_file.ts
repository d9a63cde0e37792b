// SPDX-License-Identifier: Apache-2.0
// Reads the bytes of an input on demand, with a read-ahead window so that the many small reads of a header do not cost
// one slice each.

/** Bytes that can be read at any offset. */
export interface ByteFile {
  readonly size: number;
  /** The most that is worth reading ahead, given the cost of a read. 0 for bytes in memory. */
  readonly readAhead: number;
  /** Fills `target` from `offset`; the range lies inside the file. Throws if it cannot be filled completely. */
  readInto(target: Uint8Array, offset: number): void;
  /** Releases what reading holds (a descriptor). */
  close?(): void;
}

/** Bytes in memory. */
export class MemoryFile implements ByteFile {
  readonly readAhead = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get size(): number {
    return this.#bytes.length;
  }

  readInto(target: Uint8Array, offset: number): void {
    target.set(this.#bytes.subarray(offset, offset + target.length));
  }
}

const kSmallestWindow = 64 * 1024;
/** The largest slice of a File that is read at once. */
const kLargestPiece = 4 * 1024 * 1024;

/**
 * Reads a file through one window. The window starts small, so that opening a large file reads little of it, and
 * doubles while reads are sequential.
 */
export class ReadAhead {
  readonly #file: ByteFile;
  #window = new Uint8Array(0);
  #from = 0;

  constructor(file: ByteFile) {
    this.#file = file;
  }

  /** Fills `target` up to the end of the file. Returns the number of bytes. */
  read(target: Uint8Array, position: number): number {
    const length = Math.max(0, Math.min(target.length, this.#file.size - position));
    let done = this.#fromWindow(target.subarray(0, length), position);
    while (done < length) {
      const left = target.subarray(done, Math.min(length, done + kLargestPiece));
      if (left.length >= this.#file.readAhead) {
        this.#file.readInto(left, position + done);
        done += left.length;
      } else {
        this.#fill(position + done, left.length);
        done += this.#fromWindow(left, position + done);
      }
    }
    return length;
  }

  close(): void {
    this.#file.close?.();
  }

  #fromWindow(target: Uint8Array, position: number): number {
    const skip = position - this.#from;
    if (skip < 0 || skip >= this.#window.length) return 0;
    const piece = this.#window.subarray(skip, skip + target.length);
    target.set(piece);
    return piece.length;
  }

  #fill(position: number, atLeast: number): void {
    const follows = this.#window.length > 0 && position === this.#from + this.#window.length;
    const wanted = Math.max(follows ? 2 * this.#window.length : kSmallestWindow, atLeast);
    const length = Math.min(wanted, this.#file.readAhead, this.#file.size - position);
    const window = new Uint8Array(length);
    this.#file.readInto(window, position);
    this.#window = window;
    this.#from = position;
  }
}
