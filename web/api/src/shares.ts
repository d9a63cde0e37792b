// SPDX-License-Identifier: Apache-2.0
// Verifies a large file with several workers. Each has its own core, so no memory is shared and the page need not be
// cross-origin isolated. Owns the workers that help, and how the results of all become one verdict.

import { WeighbridgeError } from "./errors.js";
import type { Session } from "./link.js";
import type { Arguments, CheckedShare } from "./protocol.js";
import { kReportEvery } from "./protocol.js";
import type { Finding, LongCallOptions, OnProgress, Verdict } from "./types.js";

/** The bytes of a file for each of its workers. */
const kBytesOfShare = 32 * 1024 * 1024;
/** For fewer bytes that the others would read, starting them takes longer than it saves. */
const kBytesWorthHelp = 16 * 1024 * 1024;
/** The findings that a report keeps: Report::kMaxFindings of the library. */
const kMaxFindings = 1000;

/**
 * How many workers may verify a file of `size` bytes. Bytes in memory would be copied for each of them, so such a file,
 * or one with such a file beside it, gets one.
 */
export function sharesOf({ source, beside }: Arguments<"verify">, size: number, most: number): number {
  const inMemory = [source, ...beside].some((one) => !("file" in one) || one.file.kind === "bytes");
  return inMemory ? 1 : Math.max(1, Math.min(most, Math.floor(size / kBytesOfShare)));
}

/** The workers that help the first one. They live until `end`, or until a job fails. */
export class Helpers {
  readonly #spawn: (onEnd: (session: Session) => void) => Session;
  readonly #sessions = new Set<Session>();

  constructor(spawn: (onEnd: (session: Session) => void) => Session) {
    this.#spawn = spawn;
  }

  /** `count` of them, started if necessary; fewer if no more can be started. */
  take(count: number): Session[] {
    while (this.#sessions.size < count) {
      let session;
      try {
        session = this.#spawn((ended) => void this.#sessions.delete(ended));
      } catch {
        break;
      }
      // Whoever calls a helper that cannot start is told; until then the failure must not count as unhandled.
      session.ready.catch(() => {});
      this.#sessions.add(session);
    }
    return [...this.#sessions].slice(0, count);
  }

  end(): void {
    for (const session of [...this.#sessions]) session.end(WeighbridgeError.of("cancelled", "the call was cancelled"));
  }
}

/**
 * Verifies a file in `of` shares: the first worker checks everything but the payload of the others' shares. A signal
 * ends the others; who gave it ends the first.
 */
export async function verifyTogether(
  first: Session,
  helpers: Helpers,
  of: number,
  args: Arguments<"verify">,
  { onProgress, signal }: LongCallOptions,
): Promise<Verdict> {
  const progress = new SharedProgress(of, onProgress);
  const check = async (session: Session, index: number, told = progress.of(index)): Promise<CheckedShare> => {
    await session.ready;
    const checked = await session.call("verify", { ...args, share: { index, of } }, told);
    progress.finish(index);
    return checked;
  };
  let others: Promise<CheckedShare | null>[] = [];
  let isDecided = false;
  const decide = (done: number, total: number): void => {
    // The first report counts the bytes of the other shares as done: none in a format that is not divided.
    if (!isDecided && total > 0) {
      isDecided = true;
      if (done >= kBytesWorthHelp) {
        progress.divide();
        others = helpers.take(of - 1).map((helper, at) => check(helper, at + 1).catch(() => null));
      }
    }
    progress.of(0)(done, total);
  };
  const stop = () => helpers.end();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const own = await check(first, 0, decide);
    // Without a report, there was no payload to read.
    if (own.shares === 1 || !isDecided) return own.verdict;
    const found: Verdict[] = [];
    for (let index = 1; index < of; ++index) {
      // What no helper has checked, for want of memory or because it is little, the first worker checks now.
      const other = (await others[index - 1]) ?? (await check(first, index));
      if (other.identity !== own.identity) return (await first.call("verify", args)).verdict; // another file by now
      found.push(other.verdict);
    }
    return together(own, found);
  } catch (error) {
    helpers.end(); // they may still be at work
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** One progress of several shares, each of which counts the bytes of the others as done from its start. */
class SharedProgress {
  readonly #fractions: number[];
  readonly #onProgress: OnProgress | undefined;
  #total = 0;
  #told = 0;
  #toldAt = -Infinity;

  constructor(of: number, onProgress: OnProgress | undefined) {
    this.#fractions = new Array<number>(of).fill(1);
    this.#fractions[0] = 0;
    this.#onProgress = onProgress;
  }

  /** From now on, what has not been heard of is about to begin. */
  divide(): void {
    this.#fractions.fill((this.#fractions.length - 1) / this.#fractions.length);
  }

  /** What hears the reports of a share. */
  of(index: number): OnProgress {
    return (done, total) => {
      if (index === 0 && total > 0) this.#total = total;
      if (total > 0) this.#set(index, done / total);
      else if (this.#total === 0) this.#onProgress?.(done, 0);
    };
  }

  finish(index: number): void {
    this.#set(index, 1);
  }

  #set(index: number, fraction: number): void {
    this.#fractions[index] = fraction;
    const sum = this.#fractions.reduce((all, one) => all + one, 1 - this.#fractions.length);
    const done = Math.round(this.#total * sum);
    const now = performance.now();
    if (done <= this.#told || (done < this.#total && now - this.#toldAt < kReportEvery)) return;
    this.#told = done;
    this.#toldAt = now;
    this.#onProgress?.(done, this.#total);
  }
}

function together({ verdict, payload: [begin, end] }: CheckedShare, others: readonly Verdict[]): Verdict {
  const all = verdict.findings;
  const { findingsTotal: counted = all.length, ...rest } = verdict;
  // A report also has a limit of text. Beyond it, findings are only counted, those of the others too.
  const isFull = counted > all.length && all.length < kMaxFindings;
  const more = isFull ? [] : others.flatMap(({ findings }) => findings);
  const payload = [...all.slice(begin, end), ...more].sort(inOrder);
  const findings = [...all.slice(0, begin), ...payload, ...all.slice(end)].slice(0, kMaxFindings);
  const total = others.reduce((sum, one) => sum + (one.findingsTotal ?? one.findings.length), counted);
  const valid = verdict.valid && others.every((other) => other.valid);
  return {
    ...rest,
    valid,
    checked: valid ? verdict.checked : "",
    findings,
    ...(total > findings.length ? { findingsTotal: total } : {}),
  };
}

/** The order of a report: by file, offset (none first), rule, tensor and message. */
function inOrder(a: Finding, b: Finding): number {
  return inTextOrder(a.file, b.file) || Number(a.offset ?? -1) - Number(b.offset ?? -1) ||
    inTextOrder(a.rule, b.rule) || inTextOrder(a.tensor, b.tensor) || inTextOrder(a.message, b.message);
}

/** The order of the bytes of UTF-8, which is that of code points; that of JavaScript's strings differs. */
function inTextOrder(a: string | null, b: string | null): number {
  const [x, y] = [[...(a ?? "")], [...(b ?? "")]];
  const at = x.findIndex((point, index) => point !== y[index]);
  if (at < 0) return x.length - y.length;
  return at < y.length ? (x[at]?.codePointAt(0) ?? 0) - (y[at]?.codePointAt(0) ?? 0) : 1;
}
