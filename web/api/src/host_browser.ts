// SPDX-License-Identifier: Apache-2.0
// The browser's host: a module worker, and no paths.

import { WeighbridgeError } from "./errors.js";
import type { Host } from "./host.js";
import type { Port } from "./link.js";
import type { Reply } from "./protocol.js";

const noPaths = () => WeighbridgeError.of("misuse", "a path needs Node: in a browser give a File");

function spawn(base: URL | null): Port {
  const worker = base === null
    ? new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "weighbridge" }) // bundlers look for this
    : new Worker(new URL("worker.js", base), { type: "module", name: "weighbridge" });
  return {
    post: (request) => worker.postMessage(request),
    listen: (onReply, onDeath) => {
      worker.onmessage = (event: MessageEvent<Reply>) => onReply(event.data);
      worker.onmessageerror = () => onDeath(WeighbridgeError.of("lost", "an answer could not be read"));
      worker.onerror = (event) => {
        // A script that cannot be loaded has no message.
        const said = event instanceof ErrorEvent ? event.message : "";
        const why = said === "" ? "its script could not be loaded" : said;
        event.preventDefault();
        onDeath(WeighbridgeError.of("lost", `the worker died: ${why}`));
      };
    },
    end: () => worker.terminate(),
    hold: () => {},
  };
}

export const browserHost: Host = {
  spawn,
  path: () => {
    throw noPaths();
  },
  blob: async (blob) => ({ kind: "blob", blob }),
  processors: () => navigator.hardwareConcurrency ?? 1,
  size: async (file) => (file.kind === "blob" ? file.blob.size : file.kind === "bytes" ? file.bytes.length : 0),
  readPath: async () => {
    throw noPaths();
  },
  save: async () => {
    throw WeighbridgeError.of("misuse", "saving to a path needs Node: in a browser take the Blob");
  },
};
