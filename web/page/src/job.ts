// SPDX-License-Identifier: Apache-2.0
// <wb-job>: one job at a time, with its name, progress and Cancel. Visible only while there is work. The core reports
// progress in bytes or steps; without any, the bar shows that it is busy.

import { button, h, replace } from "./dom.js";
import { duration, percent } from "./format-numbers.js";

export interface JobOptions {
  signal: AbortSignal;
  onProgress: (done: number, total: number) => void;
}

/** Shorter work shows no bar, which would only flash. */
const PATIENCE = 150;

export class Job extends HTMLElement {
  #abort: AbortController | null = null;

  cancel(): void { this.#abort?.abort(); }

  /** Cancels long work when its view closes. Short work goes on, because stopping it costs a new worker. */
  disconnectedCallback(): void {
    if (this.hasChildNodes()) this.cancel();
  }

  async run<T>(label: string, work: (options: JobOptions) => Promise<T>): Promise<T> {
    this.cancel();
    const abort = new AbortController();
    this.#abort = abort;
    const bar = h("progress", { max: "1", "aria-label": label });
    const far = h("span", { class: "number quiet" });
    const began = performance.now();
    const shown = setTimeout(() => replace(this, h("span", { class: "job-label" }, label), bar, far,
      button("Cancel", () => abort.abort(), "small")), PATIENCE);
    const onProgress = (done: number, total: number): void => {
      if (total > 0) bar.value = done / total;
      const text = `${percent(done, total)} · ${duration(performance.now() - began)}`;
      if (far.textContent !== text) far.textContent = text;
    };
    try {
      return await work({ signal: abort.signal, onProgress });
    } finally {
      clearTimeout(shown);
      if (this.#abort === abort) {
        this.#abort = null;
        this.replaceChildren();
      }
    }
  }
}

customElements.define("wb-job", Job);
