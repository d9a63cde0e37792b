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

// Controls, format characters, and line and paragraph separators.
const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const SPELLED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A text that may quote a file, for a terminal: what could control it is escaped, as the command does it. */
export function shown(text: string): string {
  return text.replace(STEERING, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return SPELLED[character] ?? (code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`);
  });
}

/**
 * The only error that calls of the package reject with. Its message may quote a file, with control characters escaped;
 * findings have the texts as they are.
 */
export class WeighbridgeError extends Error {
  override readonly name = "WeighbridgeError";
  readonly kind: ErrorKind;
  readonly findings: readonly Finding[];
  readonly path: string | null;

  constructor(failure: Failure) {
    super(shown(failure.message));
    this.kind = failure.kind;
    this.findings = failure.findings;
    this.path = failure.path;
  }

  /** An error that is not about a file. */
  static of(kind: ErrorKind, message: string): WeighbridgeError {
    return new WeighbridgeError({ kind, message, findings: [], path: null });
  }
}
