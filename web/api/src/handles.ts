// SPDX-License-Identifier: Apache-2.0
// The open objects of the core and what each was made from. Closing a model first closes everything made from it;
// closing twice does nothing.

export type HandleKind = "model" | "plan" | "embedder" | "generator" | "generation";

/** The caller's name for it, and its size in bytes. */
export interface About {
  readonly name: string;
  readonly size: number;
}

interface Open extends About {
  readonly parent: string | null;
  readonly close: () => void;
}

export class Handles {
  readonly #open = new Map<string, Open>();

  key(kind: HandleKind, handle: number): string {
    return `${kind} ${handle}`;
  }

  add(
    kind: HandleKind,
    handle: number,
    parent: string | null,
    close: () => void,
    about: About = { name: "", size: 0 },
  ): string {
    const key = this.key(kind, handle);
    this.#open.set(key, { parent, close, name: about.name, size: about.size });
    return key;
  }

  has(key: string): boolean {
    return this.#open.has(key);
  }

  of(kind: HandleKind, handle: number): About {
    return this.#open.get(this.key(kind, handle)) ?? { name: "", size: 0 };
  }

  close(kind: HandleKind, handle: number): null {
    this.#closeKey(this.key(kind, handle));
    return null;
  }

  #closeKey(key: string): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    for (const [other, { parent }] of [...this.#open]) {
      if (parent === key) this.#closeKey(other);
    }
    open.close();
  }
}
