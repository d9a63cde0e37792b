// SPDX-License-Identifier: Apache-2.0
// The one Weighbridge of the page. Started with the page, so that the first file does not wait for it; a worker that
// dies is reported and the page goes on, since the package starts another with the next call.

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
