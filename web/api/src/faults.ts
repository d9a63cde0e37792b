// SPDX-License-Identifier: Apache-2.0
// Turns what went wrong in the worker into a Failure: an error text of the core, or an exception from it.

import type { Failure } from "./errors.js";
import { parseCoreText } from "./json.js";
import type { ErrorKind, Finding } from "./types.js";

/** Thrown inside the worker, which sends only the failure. */
export class CoreFailure extends Error {
  readonly failure: Failure;
  /** The worker's state is no longer reliable. */
  readonly fatal: boolean;

  constructor(failure: Failure, fatal: boolean) {
    super(failure.message);
    this.failure = failure;
    this.fatal = fatal;
  }
}

/** The folders under which the core sees the files. Messages leave them out. */
const kMountedAt = /\/(?:in|out)\/\d+\//g;

export function withoutMounts(text: string): string {
  return text.replace(kMountedAt, "");
}

export function tidyFinding(finding: Finding): Finding {
  const file = finding.file === null ? null : withoutMounts(finding.file);
  return { ...finding, message: withoutMounts(finding.message), file };
}

interface FailureText {
  readonly error: ErrorKind;
  readonly path?: string;
  readonly message?: string;
  readonly findings?: readonly Finding[];
}

const kSentences: { readonly [kind in ErrorKind]: string } = {
  malformed: "the file breaks its format",
  unsupported: "this build cannot use the file",
  limit: "the file is larger than a limit allows",
  io: "the file could not be read or written",
  misuse: "the call makes no sense for this model",
  cancelled: "the call was cancelled",
  memory: "there was not enough memory",
  internal: "a fault in weighbridge itself",
  lost: "the worker died",
};

/** Parses a text of the core; throws if it is a failure. */
export function answer<T>(text: string): T {
  const value = parseCoreText(text);
  if (typeof value !== "object" || value === null || !("error" in value)) return value as T;
  const said = value as FailureText;
  const findings = (said.findings ?? []).map(tidyFinding);
  const first = findings.find((finding) => finding.severity === "error") ?? findings[0];
  const message = first?.message ?? said.message ?? kSentences[said.error] ?? "the core failed";
  const path = said.path === undefined || said.path === "" ? null : withoutMounts(said.path);
  // After running out of memory, only a new worker gives the memory back.
  throw new CoreFailure({ kind: said.error, message: withoutMounts(message), findings, path }, said.error === "memory");
}

const kMemory = /memory|bad_alloc|allocation failed|array length|OOM/i;

/** An unexpected exception: a trap, or a failed allocation. The worker must not be used again. */
export function faultOf(thrown: unknown): CoreFailure {
  if (thrown instanceof CoreFailure) return thrown;
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  const kind = kMemory.test(said) ? "memory" : "lost";
  const message = kind === "memory" ? `there was not enough memory (${said})` : `the core stopped: ${said}`;
  return new CoreFailure({ kind, message, findings: [], path: null }, true);
}
