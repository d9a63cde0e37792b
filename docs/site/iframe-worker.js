// SPDX-License-Identifier: Apache-2.0
// The site's search in pages opened from file://, where browsers start no worker: runs the worker's script in a hidden frame. The name is
// the one by which the theme's plugin `offline` knows such a script; its own would come from a network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #waiting = [];
    #inside = null;

    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      // Some browsers load an empty frame at once, others later and with another document.
      frame.addEventListener("load", () => this.#start(frame.contentWindow, url), { once: true });
      document.body.append(frame);
    }

    #start(inside, url) {
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        this.#inside = inside;
        for (const data of this.#waiting.splice(0)) this.postMessage(data);
      });
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.#inside === null) this.#waiting.push(data);
      else this.#inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
