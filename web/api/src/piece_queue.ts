// SPDX-License-Identifier: Apache-2.0
// A queue between a generation, which runs ahead, and the loop that consumes its pieces.

import type { Generated, Piece } from "./types.js";

type End = { readonly generated: Generated } | { readonly error: unknown };

export class PieceQueue {
  readonly #pieces: Piece[] = [];
  #end: End | undefined;
  #wake: (() => void) | undefined;

  push(piece: Piece): void {
    this.#pieces.push(piece);
    this.#wake?.();
  }

  end(generated: Generated): void {
    this.#end ??= { generated };
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** The pieces in order, until `end` or `fail`. */
  async *drain(): AsyncGenerator<Piece, Generated, void> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        yield piece;
      } else if (this.#end !== undefined) {
        if ("error" in this.#end) throw this.#end.error;
        return this.#end.generated;
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }
}
