// SPDX-License-Identifier: Apache-2.0
// An object of the worker, known by a handle. It is created again when the worker has been replaced.

import { WeighbridgeError } from "./errors.js";
import type { Link, Session } from "./link.js";

/** What the core returned when the object was first created. */
export function known<T>(said: T | undefined): T {
  if (said === undefined) throw WeighbridgeError.of("internal", "the core made something and said nothing about it");
  return said;
}

export class Remote {
  readonly #parent: Remote | null;
  readonly #make: (session: Session, parent: number) => Promise<number>;
  #session: Session | undefined;
  #handle = 0;
  #closed = false;

  /** `parent` is the object that it is made from; `make` gets the parent's handle, or 0. */
  constructor(parent: Remote | null, make: (session: Session, parent: number) => Promise<number>) {
    this.#parent = parent;
    this.#make = make;
  }

  get closed(): boolean {
    return this.#closed || (this.#parent?.closed ?? false);
  }

  /** The handle in this worker. Call it inside `Link.run`, which prevents two calls from creating the object twice. */
  async handle(session: Session): Promise<number> {
    if (this.closed) throw WeighbridgeError.of("misuse", "it was closed, or what it was made of was");
    if (this.#session !== session) {
      const above = this.#parent === null ? 0 : await this.#parent.handle(session);
      this.#handle = await this.#make(session, above);
      this.#session = session;
    }
    return this.#handle;
  }

  /** Frees it in the worker, if that worker still runs. */
  async close(link: Link, free: (session: Session, handle: number) => Promise<unknown>): Promise<void> {
    if (this.closed) return;
    this.#closed = true;
    const session = this.#session;
    if (session === undefined || !link.holds(session)) return;
    await link.run(async (current) => {
      if (current === session) await free(session, this.#handle);
    });
  }
}
