// SPDX-License-Identifier: Apache-2.0
// The package's only error class.

import type { ErrorKind, Finding } from "./types.js";

/** The fields of an error. The worker sends errors in this form. */
export interface Failure {
  readonly kind: ErrorKind;
  readonly message: string;
  readonly findings: readonly Finding[];
  /** The source's name, or null if no file is at fault. */
  readonly path: string | null;
}

/** The only error that calls of the package reject with. Its message may quote a file: show it as text. */
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

  /** An error that is not about a file. */
  static of(kind: ErrorKind, message: string): WeighbridgeError {
    return new WeighbridgeError({ kind, message, findings: [], path: null });
  }
}
