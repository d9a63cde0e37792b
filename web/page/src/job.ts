// SPDX-License-Identifier: Apache-2.0
// <wb-job>: one piece of work at a time, with its name, how far it is, and Cancel. Shown while there is work only.
// Progress comes from the core in bytes or in steps; without any, the bar says that it is busy.

import { button, h, replace } from "./dom.js";
import { duration, percent } from "./format-numbers.js";

export interface JobOptions {
  signal: AbortSignal;
  onProgress: (done: number, total: number) => void;
}

/** Work shorter than this shows no bar: a flash would say less than nothing. */
const PATIENCE = 150;

export class Job extends HTMLElement {
  #abort: AbortController | null = null;

  cancel(): void { this.#abort?.abort(); }

  /** Long work ends with its view. Short work is let run: stopping it costs a new worker, more than it would take. */
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
