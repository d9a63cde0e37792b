// SPDX-License-Identifier: Apache-2.0
// A planned conversion, and carrying it out.

import { coreOptions } from "./core_options.js";
import type { Link } from "./link.js";
import { Output } from "./output.js";
import type { WrittenOutput } from "./protocol.js";
import { known, Remote } from "./remote.js";
import type { CastReport, Change, ConvertOptions, FormatInfo, Loss, PlanDetails, PlanOptions } from "./types.js";

/** What a conversion wrote, and what it lost. */
export class Written extends Output {
  /** docs/schemas/convert.json */
  readonly details: PlanDetails;

  /** @internal */
  constructor(written: WrittenOutput, details: PlanDetails) {
    super(written);
    this.details = details;
  }

  /** The name of the container. */
  get format(): string {
    return this.details.to;
  }
  get losses(): readonly Loss[] {
    return this.details.losses;
  }
  /** What changed without loss. */
  get changes(): readonly Change[] {
    return this.details.changes;
  }
  /** What casts did to the values. */
  get casts(): readonly CastReport[] {
    return this.details.casts;
  }
}

const MOST_NAMED = 3;

function warn(losses: readonly Loss[]): void {
  const first = losses.slice(0, MOST_NAMED).map((loss) => JSON.stringify(loss.subject));
  const more = losses.length > MOST_NAMED ? ` and ${losses.length - MOST_NAMED} more` : "";
  console.warn(`weighbridge: lost, and no option allows it: ${first.join(", ")}${more}`);
}

export class Plan {
  readonly #link: Link;
  readonly #remote: Remote;

  /** docs/schemas/convert.json */
  readonly details: PlanDetails;

  private constructor(link: Link, remote: Remote, details: PlanDetails) {
    this.#link = link;
    this.#remote = remote;
    this.details = details;
  }

  /** @internal */
  static async make(link: Link, model: Remote, source: string, format: string, options: PlanOptions): Promise<Plan> {
    const request = { format, options: { ...coreOptions(options), overwrite: true } };
    let details: PlanDetails | undefined;
    const remote = new Remote(model, async (session, above) => {
      const made = await session.call("plan", { model: above, ...request });
      const output = options.name ?? outputName(source, format, await session.call("formats", null));
      details = { ...made.details, output };
      return made.plan;
    });
    await link.run((session) => remote.handle(session), options.signal);
    return new Plan(link, remote, known(details));
  }

  /** Whether `convert` can be called: there are no blockers, and every loss is allowed. */
  get possible(): boolean {
    return this.details.possible;
  }
  /** What makes the conversion impossible, whatever is allowed. */
  get blockers(): readonly Change[] {
    return this.details.blockers;
  }
  get losses(): readonly Loss[] {
    return this.details.losses;
  }
  /** What will change without loss. */
  get changes(): readonly Change[] {
    return this.details.changes;
  }
  /** The size of the output in bytes. */
  get outputSize(): number {
    return this.details.outputSize;
  }
  /** Whether `outputSize` is exact. */
  get outputSizeExact(): boolean {
    return this.details.outputSizeExact;
  }
  /** The name of the output. */
  get output(): string {
    return this.details.output;
  }

  /**
   * Writes the output. Rejects with `misuse` if the plan is not possible. `onLoss` gets the losses to which no option
   * consents; by default they are written to the console.
   */
  async convert(options: ConvertOptions = {}): Promise<Written> {
    const name = this.output;
    return this.#link.run(async (session) => {
      const plan = await this.#remote.handle(session);
      const { details, ...written } = await session.call("execute", { plan, name }, options.onProgress);
      const silent = details.losses.filter((loss) => !loss.consented);
      if (silent.length > 0) (options.onLoss ?? warn)(silent);
      return new Written(written, { ...details, output: name });
    }, options.signal);
  }

  /** Frees the plan's memory in the core. */
  async close(): Promise<void> {
    await this.#remote.close(this.#link, (session, plan) => session.call("closePlan", { plan }));
  }
}

/** The source's name with the extension of the target format; a folder has none. */
export function outputName(source: string, format: string, formats: readonly FormatInfo[]): string {
  const target = formats.find((known) => known.name === format);
  const known = new Set(formats.flatMap((other) => other.extensions));
  const dot = source.lastIndexOf(".");
  const stem = dot > 0 && known.has(source.slice(dot + 1).toLowerCase()) ? source.slice(0, dot) : source;
  if (target?.folder === true) return stem;
  return `${stem}.${target?.extensions[0] ?? format}`;
}
