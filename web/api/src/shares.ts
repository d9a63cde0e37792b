// SPDX-License-Identifier: Apache-2.0
// Verifies a large file with several workers. Each has its own core, so no memory is shared and the page need not be
// cross-origin isolated. Owns the workers that help, and how the results of all become one verdict.

import { WeighbridgeError } from "./errors.js";
import type { Session } from "./link.js";
import type { Arguments, CheckedShare, FileBytes } from "./protocol.js";
import type { Finding, OnProgress, Verdict } from "./types.js";

/** For fewer bytes, starting another worker takes longer than it saves. */
const kBytesOfShare = 32 * 1024 * 1024;
/** The findings that a report keeps: Report::kMaxFindings of the library. */
const kMostFindings = 1000;

/** How many workers may verify a file of this size. Bytes in memory would be copied for each, so they get one. */
export function sharesOf(file: FileBytes, size: number, most: number): number {
  return file.kind === "bytes" ? 1 : Math.max(1, Math.min(most, Math.floor(size / kBytesOfShare)));
}

/** The workers that help the first one. They live until `end`, or until a job fails. */
export class Helpers {
  readonly #spawn: (onEnd: (session: Session) => void) => Session;
  readonly #sessions = new Set<Session>();

  constructor(spawn: (onEnd: (session: Session) => void) => Session) {
    this.#spawn = spawn;
  }

  /** `count` of them, started if necessary. */
  take(count: number): Session[] {
    while (this.#sessions.size < count) {
      const session = this.#spawn((ended) => void this.#sessions.delete(ended));
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

/** Verifies a file in `of` shares: the first worker checks everything but the payload of the others' shares. */
export async function verifyTogether(
  first: Session,
  helpers: Helpers,
  of: number,
  args: Omit<Arguments<"verify">, "share">,
  onProgress: OnProgress | undefined,
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
    if (!isDecided && total > 0 && done >= kBytesOfShare) {
      progress.divide();
      others = helpers.take(of - 1).map((helper, at) => check(helper, at + 1).catch(() => null));
    }
    isDecided ||= total > 0;
    progress.of(0)(done, total);
  };
  try {
    const own = await check(first, 0, decide);
    if (own.shares === 1) return own.verdict;
    const found: Verdict[] = [];
    // What no helper has checked, for want of memory or because it is little, the first worker checks now.
    for (let index = 1; index < of; ++index) {
      found.push(((await others[index - 1]) ?? (await check(first, index))).verdict);
    }
    return together(own, found);
  } catch (error) {
    helpers.end(); // they may still be at work
    throw error;
  }
}

/** One progress of several shares, each of which counts the bytes of the others as done from its start. */
class SharedProgress {
  readonly #fractions: number[];
  readonly #onProgress: OnProgress | undefined;
  #total = 0;
  #told = 0;

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
      if (index === 0) this.#total = total;
      if (total > 0) this.#set(index, done / total);
    };
  }

  finish(index: number): void {
    this.#set(index, 1);
  }

  #set(index: number, fraction: number): void {
    this.#fractions[index] = fraction;
    const sum = this.#fractions.reduce((all, one) => all + one, 1 - this.#fractions.length);
    const done = Math.round(this.#total * sum);
    if (this.#total === 0 || done < this.#told) return;
    this.#told = done;
    this.#onProgress?.(done, this.#total);
  }
}

function together({ verdict, payload: [begin, end] }: CheckedShare, others: readonly Verdict[]): Verdict {
  const all = verdict.findings;
  const payload = [...all.slice(begin, end), ...others.flatMap(({ findings }) => findings)].sort(inOrder);
  const findings = [...all.slice(0, begin), ...payload, ...all.slice(end)].slice(0, kMostFindings);
  const total = [verdict, ...others].reduce((sum, one) => sum + (one.findings_total ?? one.findings.length), 0);
  const valid = verdict.valid && others.every((other) => other.valid);
  const { findings_total: _, ...rest } = verdict;
  return {
    ...rest,
    valid,
    checked: valid ? verdict.checked : "",
    findings,
    ...(total > findings.length ? { findings_total: total } : {}),
  };
}

/** The order of a report: by file, offset (none first), rule, tensor and message. */
function inOrder(a: Finding, b: Finding): number {
  const texts = (x: string | null, y: string | null) => ((x ?? "") < (y ?? "") ? -1 : (x ?? "") > (y ?? "") ? 1 : 0);
  return texts(a.file, b.file) || Number(a.offset ?? -1) - Number(b.offset ?? -1) || texts(a.rule, b.rule) ||
    texts(a.tensor, b.tensor) || texts(a.message, b.message);
}
