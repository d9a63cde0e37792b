// SPDX-License-Identifier: Apache-2.0
// Talks to the worker. A Session is the lifetime of one worker. The Link runs jobs one at a time, and starts a new
// worker when one has ended.

import { WeighbridgeError } from "./errors.js";
import type { Arguments, GenerateArguments, Operation, Reply, Request, Result } from "./protocol.js";
import type { Generated, LongCallOptions, OnProgress, Piece, Version } from "./types.js";

/** A worker of either host. After `died` or `end` it sends nothing more. */
export interface Port {
  post(request: Request): void;
  listen(onReply: (reply: Reply) => void, onDeath: (error: WeighbridgeError) => void): void;
  end(): void;
  /** Whether the worker keeps the program alive: only while it has work. */
  hold(on: boolean): void;
}

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly onProgress: OnProgress | undefined;
  readonly onPiece: ((piece: Piece) => void) | undefined;
}

/** A generation running in the worker. */
export interface Generation {
  readonly result: Promise<Generated>;
  /** Stops it between two steps; the result then rejects with `cancelled`. Does nothing if it has ended. */
  stop(): void;
}

export class Session {
  readonly #port: Port;
  readonly #pending = new Map<number, Pending>();
  readonly #onEnd: (session: Session, byItself: boolean) => void;
  #next = 1;
  #ended: WeighbridgeError | undefined;

  /** The core is loaded. */
  readonly ready: Promise<Version>;

  constructor(port: Port, start: Arguments<"start">, onEnd: (session: Session, byItself: boolean) => void) {
    this.#port = port;
    this.#onEnd = onEnd;
    port.listen((reply) => this.#hear(reply), (error) => this.#finish(error, true));
    this.ready = this.call("start", start);
  }

  call<Op extends Operation>(op: Op, args: Arguments<Op>, onProgress?: OnProgress | undefined): Promise<Result<Op>> {
    return this.#send(op, args, onProgress, undefined).result;
  }

  generate(args: GenerateArguments, onPiece: (piece: Piece) => void): Generation {
    const { id, result } = this.#send("generate", args, undefined, onPiece);
    // The consumer of the pieces gets the failure; until then it must not count as unhandled.
    result.catch(() => {});
    const stop = () => {
      if (this.#pending.has(id)) this.#port.post({ id, op: "stop" });
    };
    return { result, stop };
  }

  /** Ends the worker. Pending calls reject with the error. */
  end(error: WeighbridgeError): void {
    this.#finish(error, false);
  }

  #send<Op extends Operation>(
    op: Op,
    args: Arguments<Op>,
    onProgress: OnProgress | undefined,
    onPiece: ((piece: Piece) => void) | undefined,
  ): { id: number; result: Promise<Result<Op>> } {
    const id = this.#next++;
    const result = new Promise<Result<Op>>((resolve, reject) => {
      if (this.#ended !== undefined) {
        reject(this.#ended);
        return;
      }
      this.#port.post({ id, op, args });
      this.#pending.set(id, { resolve, reject, onProgress, onPiece });
      this.#port.hold(true);
    });
    return { id, result };
  }

  #hear(reply: Reply): void {
    const call = this.#pending.get(reply.id);
    if (call === undefined || this.#ended !== undefined) return;
    if (reply.kind === "progress") {
      call.onProgress?.(reply.done, reply.total);
      return;
    }
    if (reply.kind === "piece") {
      call.onPiece?.(reply.piece);
      return;
    }
    this.#pending.delete(reply.id);
    if (this.#pending.size === 0) this.#port.hold(false);
    if (reply.kind === "done") {
      call.resolve(reply.value as never);
      return;
    }
    const error = new WeighbridgeError(reply.failure);
    call.reject(error);
    if (reply.fatal) this.#finish(error, true);
  }

  #finish(error: WeighbridgeError, byItself: boolean): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#port.end();
    for (const call of this.#pending.values()) call.reject(error);
    this.#pending.clear();
    this.#onEnd(this, byItself);
  }
}

interface Task {
  readonly job: (session: Session) => Promise<void>;
  readonly reject: (error: unknown) => void;
}

const cancelled = () => WeighbridgeError.of("cancelled", "the call was cancelled");

export class Link {
  readonly #spawn: () => Port;
  readonly #start: Arguments<"start">;
  readonly #queue: Task[] = [];
  #running: Task | undefined;
  #session: Session | undefined;
  #closed = false;

  /** The worker died by itself. */
  onlost: (() => void) | null = null;

  constructor(spawn: () => Port, start: Arguments<"start">) {
    this.#spawn = spawn;
    this.#start = start;
  }

  /** Starts the first worker. */
  start(): Promise<Version> {
    return this.run((session) => session.ready);
  }

  /** Whether this is the current worker. */
  holds(session: Session): boolean {
    return this.#session === session;
  }

  /** Runs a job after those before it. Aborting a running job ends its worker. */
  run<T>(job: (session: Session) => Promise<T>, signal?: AbortSignal | undefined): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(WeighbridgeError.of("misuse", "this Weighbridge was closed"));
      if (signal?.aborted === true) return reject(cancelled());
      const settle = () => signal?.removeEventListener("abort", abort);
      const task: Task = {
        job: async (session) => resolve(await job(session).finally(settle)),
        reject,
      };
      const abort = () => {
        reject(cancelled());
        if (this.#running === task) {
          this.#session?.end(WeighbridgeError.of("lost", "its worker was ended, because another call was cancelled"));
        } else {
          this.#queue.splice(this.#queue.indexOf(task), 1);
        }
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#queue.push(task);
      void this.#pump();
    });
  }

  /** Runs one operation as a job. */
  call<Op extends Operation>(op: Op, args: Arguments<Op>, options: LongCallOptions = {}): Promise<Result<Op>> {
    return this.run((session) => session.call(op, args, options.onProgress), options.signal);
  }

  close(): void {
    this.#closed = true;
    for (const task of this.#queue.splice(0)) task.reject(cancelled());
    this.#session?.end(cancelled());
  }

  async #pump(): Promise<void> {
    if (this.#running !== undefined) return;
    for (let task = this.#queue.shift(); task !== undefined; task = this.#queue.shift()) {
      this.#running = task;
      try {
        const session = (this.#session ??= this.#begin());
        await session.ready;
        await task.job(session);
      } catch (error) {
        task.reject(error);
      }
      this.#running = undefined;
    }
  }

  #begin(): Session {
    return new Session(this.#spawn(), this.#start, (session, byItself) => {
      if (this.#session === session) this.#session = undefined;
      // After the pending calls have been rejected.
      if (byItself) setTimeout(() => this.onlost?.(), 0);
    });
  }
}
