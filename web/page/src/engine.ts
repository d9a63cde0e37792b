// SPDX-License-Identifier: Apache-2.0
// The page's only Weighbridge. It starts with the page, so that the first file does not wait for it. If a worker dies,
// the page reports it and goes on, because the package starts another one with the next call.

import { Weighbridge } from "./api.js";
import { notify } from "./notice.js";

let started: Promise<Weighbridge> | null = null;

export function engine(): Promise<Weighbridge> {
  started ??= Weighbridge.start().then((wb) => {
    wb.onlost = () => notify("The worker stopped: it ran out of memory or failed. A new one starts with the next " +
      "step; the files stay open.", "error");
    return wb;
  }).catch((error: unknown) => {
    started = null; // the next call tries again
    throw error;
  });
  return started;
}
