// SPDX-License-Identifier: Apache-2.0
// The bytes of an output as a list of chunks. It grows without copying and is handed over without joining. If the
// platform can store bytes elsewhere, only the chunks in use stay in memory.

const kChunk = 4 * 1024 * 1024;
/** How many chunks stay in memory if others can be stored elsewhere. */
const kHotChunks = 16;

/** Stores bytes and loads them again. In a browser a Blob, which the browser may keep on disk. */
export interface ChunkStore {
  put(bytes: Uint8Array): Blob;
  get(blob: Blob): Uint8Array;
}

export class Chunks {
  readonly #store: ChunkStore | null;
  /** A missing chunk is all zeros. */
  #chunks: (Uint8Array | Blob | undefined)[] = [];
  /** The chunks in memory, the most recently used one last. */
  #hot: number[] = [];
  #size = 0;

  constructor(store: ChunkStore | null) {
    this.#store = store;
  }

  get size(): number {
    return this.#size;
  }

  /** Writes at a position; a gap before it is filled with zeros. */
  write(bytes: Uint8Array, position: number): void {
    this.#each(position, bytes.length, (chunk, at, from, length) => {
      chunk().set(bytes.subarray(from, from + length), at);
    });
    this.#size = Math.max(this.#size, position + bytes.length);
  }

  /** Fills `target` up to the end of the bytes. Returns their number. */
  read(target: Uint8Array, position: number): number {
    const length = Math.max(0, Math.min(target.length, this.#size - position));
    this.#each(position, length, (chunk, at, from, count, index) => {
      const piece = target.subarray(from, from + count);
      if (this.#chunks[index] === undefined) piece.fill(0);
      else piece.set(chunk().subarray(at, at + count));
    });
    return length;
  }

  /** Truncates, or appends zeros. */
  resize(size: number): void {
    if (size < this.#size) {
      const whole = Math.ceil(size / kChunk);
      this.#chunks.length = Math.min(this.#chunks.length, whole);
      this.#hot = this.#hot.filter((index) => index < whole);
      // The removed bytes must read as zeros if the file grows again.
      const rest = size % kChunk;
      if (rest > 0 && this.#chunks[whole - 1] !== undefined) this.#heat(whole - 1).fill(0, rest);
    }
    this.#size = size;
  }

  /** All bytes in order. Leaves the object empty. */
  take(): (Uint8Array | Blob)[] {
    const taken: (Uint8Array | Blob)[] = [];
    for (let start = 0, index = 0; start < this.#size; start += kChunk, ++index) {
      const length = Math.min(kChunk, this.#size - start);
      const chunk = this.#chunks[index] ?? new Uint8Array(length);
      // Copies the last chunk, so that a small file does not keep a whole chunk in memory.
      taken.push(length === kChunk ? chunk : chunk.slice(0, length));
    }
    this.#chunks = [];
    this.#hot = [];
    this.#size = 0;
    return taken;
  }

  #each(
    position: number,
    length: number,
    work: (chunk: () => Uint8Array, at: number, from: number, length: number, index: number) => void,
  ): void {
    for (let done = 0; done < length; ) {
      const index = Math.floor((position + done) / kChunk);
      const at = (position + done) % kChunk;
      const count = Math.min(length - done, kChunk - at);
      work(() => this.#heat(index), at, done, count, index);
      done += count;
    }
  }

  /** The chunk, loaded into memory. Stores another one elsewhere to make room, if that is possible. */
  #heat(index: number): Uint8Array {
    const known = this.#chunks[index];
    if (known instanceof Uint8Array && this.#hot.at(-1) === index) return known;
    const chunk = known instanceof Uint8Array ? known : known === undefined ? new Uint8Array(kChunk) : this.#get(known);
    this.#chunks[index] = chunk;
    if (this.#store !== null) {
      this.#hot = [...this.#hot.filter((other) => other !== index), index];
      this.#coolDown(this.#store);
    }
    return chunk;
  }

  #get(blob: Blob): Uint8Array {
    if (this.#store === null) throw new Error("a chunk was put away without a store");
    return this.#store.get(blob);
  }

  #coolDown(store: ChunkStore): void {
    if (this.#hot.length <= kHotChunks) return;
    const coldest = this.#hot.shift();
    const chunk = coldest === undefined ? undefined : this.#chunks[coldest];
    if (coldest !== undefined && chunk instanceof Uint8Array) this.#chunks[coldest] = store.put(chunk);
  }
}
