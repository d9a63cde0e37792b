// SPDX-License-Identifier: Apache-2.0
// Embeds texts with an open model.

import { coreOptions } from "./core_options.js";
import type { Link } from "./link.js";
import { host } from "./host.js";
import type { Result } from "./protocol.js";
import { known, Remote } from "./remote.js";
import { mounted } from "./source.js";
import type { EmbedderOptions, EmbedOptions, LongCallOptions } from "./types.js";

/** Texts per call of the core: enough to fill its batches, few enough to show progress. */
const kTextsPerStep = 16;

export class Embedder {
  readonly #link: Link;
  readonly #remote: Remote;

  /** Numbers per vector. */
  readonly dimension: number;
  /** The largest number of tokens, including the special ones; longer texts are truncated. */
  readonly maxLength: number;

  /** Settings of the model that are unknown, or passed over as asked: sentences. */
  readonly notes: readonly string[];

  private constructor(link: Link, remote: Remote, dimension: number, maxLength: number, notes: readonly string[]) {
    this.#link = link;
    this.#remote = remote;
    this.dimension = dimension;
    this.maxLength = maxLength;
    this.notes = notes;
  }

  /** @internal */
  static async make(link: Link, model: Remote, options: EmbedderOptions): Promise<Embedder> {
    const { vocabulary } = options;
    const args = {
      options: coreOptions(options),
      vocabulary: vocabulary === undefined ? null : await mounted(await host(), vocabulary),
    };
    let made: Result<"embedder"> | undefined;
    const remote = new Remote(model, async (session, above) => {
      made = await session.call("embedder", { model: above, ...args }, options.onProgress);
      return made.embedder;
    });
    await link.run((session) => remote.handle(session), options.signal);
    const { dimension, maxLength, notes } = known(made);
    return new Embedder(link, remote, dimension, maxLength, notes);
  }

  /**
   * One vector per text, normalized if the model says so. `role` chooses among the model's prompts, which stand before
   * each text. `onProgress` counts texts.
   */
  async embed(texts: readonly string[], options: EmbedOptions = {}): Promise<Float32Array[]> {
    return this.#link.run(async (session) => {
      const vectors: Float32Array[] = [];
      for (let first = 0; first < texts.length; first += kTextsPerStep) {
        const embedder = await this.#remote.handle(session);
        const step = texts.slice(first, first + kTextsPerStep);
        const numbers = await session.call("embed", { embedder, texts: step, role: options.role ?? "text" });
        step.forEach((_, at) => vectors.push(numbers.subarray(at * this.dimension, (at + 1) * this.dimension)));
        options.onProgress?.(vectors.length, texts.length);
      }
      return vectors;
    }, options.signal);
  }

  /** The cosine of two texts' vectors, from -1 to 1. */
  async similarity(one: string, other: string, options: LongCallOptions = {}): Promise<number> {
    const [a, b] = await this.embed([one, other], options);
    return cosine(known(a), known(b));
  }

  /** Frees the embedder's memory in the core. */
  async close(): Promise<void> {
    await this.#remote.close(this.#link, (session, embedder) => session.call("closeEmbedder", { embedder }));
  }
}

/** The cosine of two vectors of the same length; 0 if either is zero. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let product = 0;
  let squareA = 0;
  let squareB = 0;
  a.forEach((x, at) => {
    const y = b[at] ?? 0;
    product += x * y;
    squareA += x * x;
    squareB += y * y;
  });
  return squareA === 0 || squareB === 0 ? 0 : product / Math.sqrt(squareA * squareB);
}
