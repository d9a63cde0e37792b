// SPDX-License-Identifier: Apache-2.0
// Generates text with a language model, piece by piece.

import { coreOptions } from "./core_options.js";
import type { Link } from "./link.js";
import { WeighbridgeError } from "./errors.js";
import { PieceQueue } from "./piece_queue.js";
import type { Result } from "./protocol.js";
import { known, Remote } from "./remote.js";
import type { Generated, GenerateOptions, GeneratorOptions, Piece } from "./types.js";

export class Generator {
  readonly #link: Link;
  readonly #remote: Remote;

  /** The number of tokens in the vocabulary. */
  readonly vocabulary: number;
  /** The largest number of tokens of prompt and text together. */
  readonly context: number;

  private constructor(link: Link, remote: Remote, vocabulary: number, context: number) {
    this.#link = link;
    this.#remote = remote;
    this.vocabulary = vocabulary;
    this.context = context;
  }

  /** @internal */
  static async make(link: Link, model: Remote, options: GeneratorOptions): Promise<Generator> {
    let made: Result<"generator"> | undefined;
    const remote = new Remote(model, async (session, above) => {
      const args = { model: above, options: coreOptions(options) };
      made = await session.call("generator", args, options.onProgress);
      return made.generator;
    });
    await link.run((session) => remote.handle(session), options.signal);
    const { vocabulary, context } = known(made);
    return new Generator(link, remote, vocabulary, context);
  }

  /**
   * Continues the prompt. Yields text as it is generated; the iterator's return value says how it ended. Leaving the
   * loop stops the generation. So does `signal`, which makes the loop throw `cancelled`. Other calls run between its
   * steps.
   */
  async *generate(prompt: string, options: GenerateOptions = {}): AsyncGenerator<Piece, Generated, void> {
    const request = { prompt, options: coreOptions(options) };
    const queue = new PieceQueue();
    const generation = await this.#link.run(async (session) => {
      const generator = await this.#remote.handle(session);
      return session.generate({ generator, ...request }, (piece) => queue.push(piece));
    }, options.signal);
    generation.result.then((generated) => queue.end(generated), (error: unknown) => queue.fail(error));
    const abort = () => {
      generation.stop();
      queue.fail(WeighbridgeError.of("cancelled", "the generation was cancelled"));
    };
    options.signal?.addEventListener("abort", abort, { once: true });
    try {
      if (options.signal?.aborted === true) abort();
      return yield* queue.drain();
    } finally {
      options.signal?.removeEventListener("abort", abort);
      generation.stop();
    }
  }

  /** Generates the whole text at once. */
  async complete(prompt: string, options: GenerateOptions = {}): Promise<Generated> {
    const pieces = this.generate(prompt, options);
    for (;;) {
      const step = await pieces.next();
      if (step.done === true) return step.value;
    }
  }

  /** Frees the generator's memory in the core. */
  async close(): Promise<void> {
    await this.#remote.close(this.#link, (session, generator) => session.call("closeGenerator", { generator }));
  }
}
