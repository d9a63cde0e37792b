// SPDX-License-Identifier: Apache-2.0
// The worker: receives requests, runs them on the core and replies. Platform is what it needs from the platform;
// worker.ts and node_worker.ts provide it, and tests pass a fake core.

import type { ChunkStore } from "./chunks.js";
import type { Core } from "./core.js";
import { answer, CoreFailure, faultOf, tidyFinding } from "./faults.js";
import type { About } from "./handles.js";
import { Handles } from "./handles.js";
import type { Mounted, Readers } from "./mounts.js";
import { Mounts } from "./mounts.js";
import type {
  Arguments,
  Beside,
  CheckedShare,
  MountedSource,
  OpenedModel,
  Operation,
  Reply,
  Request,
  Result,
  WrittenOutput,
} from "./protocol.js";
import { kReportEvery } from "./protocol.js";
import type {
  Comparison,
  DifferenceMap,
  EditDetails,
  Explanation,
  Finding,
  FormatInfo,
  Generated,
  Hash,
  Histogram,
  Inspection,
  PlanDetails,
  Statistics,
  Tokens,
  Version,
} from "./types.js";

export interface Platform {
  readonly readers: Readers;
  /** Null if outputs stay in memory. */
  readonly store: ChunkStore | null;
  loadCore(base: string | null, simd: boolean): Promise<Core>;
  post(reply: Reply, transfer: ArrayBuffer[]): void;
  /** Lets waiting messages be handled. */
  pause(): Promise<void>;
}

/** How long a generation runs before messages are handled, in milliseconds: one frame of a screen. */
const kStep = 16;

type Handlers = { [Op in Operation]: (args: Arguments<Op>, id: number) => Result<Op> | Promise<Result<Op>> };

/** The core's JSON for an admission; kSteps maps its steps to the package's names. */
interface OffersText {
  readonly checks: readonly { step: keyof typeof kSteps; passed: boolean; finding: Finding | null }[];
  readonly adapters: readonly { offered: boolean; finding: Finding | null }[];
}
const kSteps = {
  "artifact": "artifact",
  "minimodel-manifest": "manifest",
  "import-receipt": "receipt",
  "selector-registry": "registry",
} as const;

export class Server {
  readonly #platform: Platform;
  readonly #handles = new Handles();
  /** The calls with a running generation. */
  readonly #generating = new Set<number>();
  #core: Core | undefined;
  #mounts: Mounts | undefined;
  #reported = 0;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** Never rejects: a failure is sent as a reply. */
  async hear(request: Request): Promise<void> {
    const { id, op } = request;
    if (op === "stop") {
      this.#generating.delete(id);
      return;
    }
    try {
      if (this.#core !== undefined) this.#report(this.#core, id);
      const handler = this.#handlers[op] as (args: unknown, id: number) => unknown;
      const value = await handler((request as { args: unknown }).args, id);
      this.#platform.post({ id, kind: "done", value }, buffersOf(value));
    } catch (thrown) {
      const { failure, fatal } = faultOf(thrown);
      this.#platform.post({ id, kind: "failed", failure, fatal }, []);
    }
  }

  #report(core: Core, id: number): void {
    let isCounted = false; // the first report with a total comes at once, as the last one does
    core.onProgress = (done, total) => {
      const now = performance.now();
      if ((total > 0 && (!isCounted || done >= total)) || now - this.#reported >= kReportEvery) {
        this.#reported = now;
        isCounted ||= total > 0;
        this.#platform.post({ id, kind: "progress", done, total }, []);
      }
      return true;
    };
  }

  get #running(): { core: Core; mounts: Mounts } {
    if (this.#core === undefined || this.#mounts === undefined) throw new Error("the core was not started");
    return { core: this.#core, mounts: this.#mounts };
  }

  /** Mounts a source, and the files beside it, while the work runs. */
  #mounted<T>({ source, beside }: Beside, work: (mounted: Mounted) => T): T {
    const mounted = this.#running.mounts.mount(source, beside);
    try {
      return work(mounted);
    } finally {
      mounted.unmount();
    }
  }

  /** Mounts sources while the work runs. */
  #with<T>(sources: readonly (MountedSource | null)[], work: (mounted: (Mounted | null)[]) => T): T {
    const mounted: (Mounted | null)[] = [];
    try {
      for (const source of sources) mounted.push(source === null ? null : this.#running.mounts.mount(source));
      return work(mounted);
    } finally {
      for (const one of mounted) one?.unmount();
    }
  }

  /** Lets the core write an output, and takes the files. */
  #writing<Details>(name: string, write: (path: string) => string): WrittenOutput & { details: Details } {
    const place = this.#running.mounts.output(name);
    try {
      const details = answer<Details>(write(place.path));
      return { ...place.take(), details };
    } finally {
      place.leave();
    }
  }

  readonly #handlers: Handlers = {
    start: async ({ base, simd }) => {
      try {
        this.#core = await this.#platform.loadCore(base, simd);
      } catch (thrown) {
        const message = `the core could not be loaded: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
        throw new CoreFailure({ kind: "lost", message, findings: [], path: null }, true);
      }
      this.#mounts = new Mounts(this.#core.FS, this.#platform.readers, this.#platform.store);
      return { commit: "", ...answer<Omit<Version, "commit">>(this.#core.version()) };
    },
    formats: () => answer<{ formats: FormatInfo[] }>(this.#running.core.formats()).formats,
    memory: () => this.#running.core.HEAPU8.buffer.byteLength,
    open: (args) => this.#open(args),
    adapt: (args) => this.#adapt(args),
    logical: ({ model, dtype }) => {
      const made = answer<{ model: number }>(this.#running.core.logical(model, dtype));
      return this.#derived(made.model, model, () => {});
    },
    close: ({ model }) => this.#handles.close("model", model),
    verify: ({ options, share, ...given }) => this.#mounted(given, ({ path, name }) => {
      const checked = answer<CheckedShare>(this.#running.core.verify(path, options, share));
      const { verdict } = checked;
      const findings = verdict.findings.map(tidyFinding);
      return { ...checked, verdict: { ...verdict, path: name, findings } };
    }),
    hash: ({ model, names }) =>
      answer<Hash>(this.#running.core.hash(model, this.#handles.of("model", model).name, names)),
    ztHash: ({ model }) => answer<Hash>(this.#running.core.zt_hash(model, this.#handles.of("model", model).name)),
    statistics: ({ model, tensor }) => answer<Statistics>(this.#running.core.statistics(model, tensor)),
    histogram: ({ model, tensor, bins }) => answer<Histogram>(this.#running.core.histogram(model, tensor, bins)),
    rows: ({ model, tensor, first, count }) => numbers(this.#running.core.rows(model, tensor, first, count)),
    read: ({ model, tensor, dtype }) => {
      const data = this.#running.core.read(model, tensor, dtype);
      if (typeof data === "string") return answer(data);
      return { dtype: data.dtype, shape: [...data.shape], bytes: own(data.bytes) };
    },
    extract: ({ model, tensor, name }) =>
      this.#writing(name, (path) => this.#running.core.extract(model, tensor, path)),
    diff: ({ a, b, options }) => {
      const name = (model: number): string => this.#handles.of("model", model).name;
      return answer<Comparison>(this.#running.core.diff(a, name(a), b, name(b), options));
    },
    differenceMap: ({ a, b, options, tensors, grid }) =>
      answer<DifferenceMap>(this.#running.core.differenceMap(a, tensors.a, b, tensors.b, grid.high, grid.wide, options)),
    explain: ({ options, offset, length, ...given }) => this.#mounted(given, ({ path, name }) => {
      const found = answer<Explanation>(this.#running.core.explain(path, offset, length, options));
      return { ...found, path: name, findings: found.findings.map(tidyFinding) };
    }),
    plan: ({ model, format, options }) => {
      const { core } = this.#running;
      const about = this.#handles.of("model", model);
      const said = core.plan(model, about.name, format, options);
      const { plan, ...details } = answer<{ plan: number } & PlanDetails>(said);
      this.#handles.add("plan", plan, this.#handles.key("model", model), () => core.closePlan(plan), about);
      return { plan, details };
    },
    execute: ({ plan, name }) =>
      this.#writing(name, (path) => this.#running.core.execute(plan, this.#handles.of("plan", plan).name, path)),
    closePlan: ({ plan }) => this.#handles.close("plan", plan),
    planEdit: (args) => this.#editing(args, (path, output) =>
      tidyEdit(answer<EditDetails>(this.#running.core.planEdit(path, output, args.options)), args)),
    edit: (args) => this.#editing(args, (path, output, take) => {
      const details = tidyEdit(answer<EditDetails>(this.#running.core.edit(path, output, args.options)), args);
      return { ...take(), details };
    }),
    tokenize: ({ model, text, special }) => answer<Tokens>(this.#running.core.tokenize(model, text, special)),
    embedder: ({ model, vocabulary, options }) =>
      this.#with([vocabulary], ([mounted]) => {
        const { core } = this.#running;
        const made = answer<Result<"embedder">>(
          core.embedder(model, mounted ? { ...options, vocabulary: mounted.path } : options),
        );
        const close = () => core.closeEmbedder(made.embedder);
        this.#handles.add("embedder", made.embedder, this.#handles.key("model", model), close);
        return made;
      }),
    embed: ({ embedder, texts, role }) => numbers(this.#running.core.embed(embedder, texts, role)),
    closeEmbedder: ({ embedder }) => this.#handles.close("embedder", embedder),
    generator: ({ model, options }) => {
      const { core } = this.#running;
      const made = answer<Result<"generator">>(core.generator(model, options));
      const close = () => core.closeGenerator(made.generator);
      this.#handles.add("generator", made.generator, this.#handles.key("model", model), close);
      return made;
    },
    generate: (args, id) => this.#generate(args, id),
    closeGenerator: ({ generator }) => this.#handles.close("generator", generator),
    admission: (args) => this.#admission(args),
  };

  /** With the file mounted, and a place for the edited one if it has a name. */
  #editing<T>(
    { name, ...given }: Arguments<"edit">,
    work: (path: string, output: string, take: () => WrittenOutput) => T,
  ): T {
    return this.#mounted(given, ({ path }) => {
      const place = name === "" ? null : this.#running.mounts.output(name);
      try {
        return work(path, place?.path ?? "", () => place?.take() ?? { name, folder: false, files: [] });
      } finally {
        place?.leave();
      }
    });
  }

  #open({ source, beside, options, tokenizer }: Arguments<"open">): OpenedModel {
    const { core, mounts } = this.#running;
    const mounted: Mounted[] = [];
    const unmount = () => mounted.splice(0).forEach((one) => one.unmount());
    try {
      const main = mounts.mount(source, beside);
      mounted.push(main);
      if (tokenizer !== null) mounted.push(mounts.mount(tokenizer));
      const all = mounted[1] ? { ...options, tokenizer: mounted[1].path } : options;
      const { model, findings } = answer<{ model: number; findings: Finding[] }>(core.open(main.path, all));
      const inspection = this.#added(model, null, main, unmount);
      return { model, inspection: { ...inspection, findings: findings.map(tidyFinding) } };
    } catch (thrown) {
      unmount();
      throw thrown;
    }
  }

  /** Mounts all in one folder, because the paths of a registry are relative to it. */
  #admission({ artifact, adapters, ...papers }: Arguments<"admission">): Result<"admission"> {
    const beside = [...Object.values(papers), ...adapters].filter((source) => source !== null);
    const names = new Set([artifact, ...beside].map(({ name }) => name));
    if (names.size <= beside.length) {
      const message = "two of the files have the same name: in one folder they cannot lie";
      throw new CoreFailure({ kind: "misuse", message, findings: [], path: artifact.name }, false);
    }
    return this.#mounted({ source: artifact, beside }, (mounted) => {
      const folder = mounted.path.slice(0, mounted.path.lastIndexOf("/") + 1);
      const path = (source: MountedSource | null) => (source === null ? "" : folder + source.name);
      const evidence = { manifest: path(papers.manifest), receipt: path(papers.receipt), ledger: path(papers.ledger),
        registry: path(papers.registry) };
      const said = answer<OffersText>(this.#running.core.admission(mounted.path, evidence, adapters.map(path)));
      return {
        checks: said.checks.map(({ step, passed, finding }) => {
          return { step: kSteps[step], passed, findings: finding === null ? [] : [tidyFinding(finding)] };
        }),
        adapters: said.adapters.map(({ offered, finding }, at) => {
          const { message = "", rule = "" } = finding === null ? {} : tidyFinding(finding);
          return { path: adapters[at]?.name ?? "", offered, reason: message, rule };
        }),
      };
    });
  }

  #adapt({ model, adapters }: Arguments<"adapt">): OpenedModel {
    const { core, mounts } = this.#running;
    const mounted: Mounted[] = [];
    const unmount = () => mounted.splice(0).forEach((one) => one.unmount());
    try {
      for (const adapter of adapters) mounted.push(mounts.mount(adapter));
      const made = answer<{ model: number }>(core.adapt(model, mounted.map((one) => one.path)));
      return this.#derived(made.model, model, unmount);
    } catch (thrown) {
      unmount();
      throw thrown;
    }
  }

  /** Registers a model that the core made from another one. */
  #derived(model: number, from: number, unmount: () => void): OpenedModel {
    const inspection = this.#added(model, this.#handles.key("model", from), this.#handles.of("model", from), unmount);
    return { model, inspection };
  }

  /** Registers a model that the core opened, and returns its contents. */
  #added(model: number, parent: string | null, about: About, unmount: () => void): Inspection {
    const { core } = this.#running;
    const close = () => {
      core.close(model);
      unmount();
    };
    this.#handles.add("model", model, parent, close, about);
    try {
      return answer<Inspection>(core.inspect(model, about.name));
    } catch (thrown) {
      this.#handles.close("model", model);
      throw thrown;
    }
  }

  async #generate(args: Arguments<"generate">, id: number): Promise<Generated> {
    const { core } = this.#running;
    const { generator, prompt, options } = args;
    const { generation } = answer<{ generation: number }>(core.generate(generator, prompt, options));
    const above = this.#handles.key("generator", generator);
    const key = this.#handles.add("generation", generation, above, () => core.closeGeneration(generation));
    this.#generating.add(id);
    try {
      for (;;) {
        if (!this.#generating.has(id) || !this.#handles.has(key)) throw cancelled();
        const step = answer<{ text: string; tokens: number; done: boolean; result?: Generated }>(
          core.next(generation, kStep),
        );
        this.#platform.post({ id, kind: "piece", piece: { text: step.text, tokens: step.tokens } }, []);
        if (step.done && step.result !== undefined) return step.result;
        await this.#platform.pause();
      }
    } finally {
      this.#generating.delete(id);
      this.#handles.close("generation", generation);
    }
  }
}

function tidyEdit(details: EditDetails, { source, name }: Arguments<"edit">): EditDetails {
  return { ...details, path: source.name, output: name === "" ? null : name };
}

function cancelled(): CoreFailure {
  const message = "the generation was cancelled";
  return new CoreFailure({ kind: "cancelled", message, findings: [], path: null }, false);
}

function numbers(values: Float32Array | string): Float32Array {
  return typeof values === "string" ? answer(values) : own(values);
}

/** An array that covers a whole buffer, which can be transferred. */
function own<T extends Float32Array | Uint8Array>(values: T): T {
  const whole = values.byteOffset === 0 && values.byteLength === values.buffer.byteLength;
  return whole ? values : (values.slice() as T);
}

/** The buffers of a reply, which are transferred rather than copied. */
function buffersOf(value: unknown): ArrayBuffer[] {
  if (value instanceof Uint8Array || value instanceof Float32Array) return [value.buffer as ArrayBuffer];
  if (typeof value !== "object" || value === null) return [];
  if ("bytes" in value) return buffersOf(value.bytes);
  if (!("files" in value)) return [];
  return (value as WrittenOutput).files.flatMap((file) => file.chunks.flatMap(buffersOf));
}
