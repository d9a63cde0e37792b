// SPDX-License-Identifier: Apache-2.0
// The one error of the package.

import type { ErrorKind, Finding } from "./types.js";

/** What an error carries besides its sentence; also how it travels from the worker. */
export interface Failure {
  readonly kind: ErrorKind;
  readonly message: string;
  readonly findings: readonly Finding[];
  /** The source's name, or null where no file is at fault. */
  readonly path: string | null;
}

/** Every call of the package rejects with this error and no other. Its message may quote a file: show it as text. */
export class WeighbridgeError extends Error {
  override readonly name = "WeighbridgeError";
  readonly kind: ErrorKind;
  readonly findings: readonly Finding[];
  readonly path: string | null;

  constructor(failure: Failure) {
    super(failure.message);
    this.kind = failure.kind;
    this.findings = failure.findings;
    this.path = failure.path;
  }

  /** An error that no file is the reason of. */
  static of(kind: ErrorKind, message: string): WeighbridgeError {
    return new WeighbridgeError({ kind, message, findings: [], path: null });
  }
}
