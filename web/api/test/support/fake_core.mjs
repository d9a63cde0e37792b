// SPDX-License-Identifier: Apache-2.0
// A core without WebAssembly, for tests of the code around it. It reads and writes through the mounted file system like
// the real one, and the first bytes of a file tell it what to do.

/** The needed part of Emscripten's FS: nodes by name, mounts at the root, and errors with a number. */
export class FakeFs {
  ErrnoError = class ErrnoError extends Error {
    constructor(errno) {
      super(`errno ${errno}`);
      this.errno = errno;
    }
  };
  mounts = new Map();
  nodes = new Map();
  destroyed = 0;
  nextId = 1;

  createNode(parent, name, mode) {
    const node = { id: this.nextId++, name, mode, parent };
    node.parent ??= node;
    if (parent !== null) this.nodes.set(`${parent.id}/${name}`, node);
    return node;
  }

  destroyNode(node) {
    this.destroyed++;
    this.nodes.delete(`${node.parent.id}/${node.name}`);
  }

  mkdir() {}

  mount(type, options, mountpoint) {
    this.mounts.set(mountpoint.slice(1), type.mount({}));
  }

  lookup(path) {
    const [, mount, ...names] = path.split("/");
    return names.reduce(
      (node, name) => this.nodes.get(`${node.id}/${name}`) ?? node.node_ops.lookup(node, name), this.mounts.get(mount));
  }

  create(path) {
    const at = path.lastIndexOf("/");
    const parent = this.lookup(path.slice(0, at));
    return parent.node_ops.mknod(parent, path.slice(at + 1), 0o100644);
  }

  read(path, length, position) {
    const node = this.lookup(path);
    const heap = new Int8Array(length + 8);
    const count = node.stream_ops.read({ node, position: 0 }, heap, 8, length, position);
    return new Uint8Array(heap.slice(8, 8 + count).buffer);
  }

  write(node, bytes, position) {
    return node.stream_ops.write({ node, position: 0 }, new Int8Array(bytes), 0, bytes.length, position);
  }
}

function failure(error, message) {
  const nothing = { file: null, tensor: null, expected: null, found: null };
  const finding = { rule: "core/fake", severity: "error", kind: "io", message, offset: -1, ...nothing };
  const text = JSON.stringify({ error, path: "/in/1/x", format: null, findings: [finding] });
  return text.replace("-1", "18446744073709551615");
}

export default async function fakeCore({ wasmBinary }) {
  if (wasmBinary[0] !== 0) throw new Error("the fake core is not WebAssembly");
  const FS = new FakeFs();
  const open = new Map();
  let next = 1;
  let isFirst = false; // it was asked for the first share
  const text = (path) => new TextDecoder().decode(FS.read(path, 64, 0));
  const core = {
    FS,
    HEAPU8: new Uint8Array(65536),
    version: () => JSON.stringify({ version: "0.0.0", simd: false }),
    formats() {
      const formats = ["zt", "stb"].map((name) => ({ name, extensions: [name], folder: false }));
      return JSON.stringify({ schema: 3, formats });
    },
    open(path) {
      if (text(path).startsWith("bad")) return failure("malformed", `${path} is bad`);
      open.set(next, path);
      return JSON.stringify({ model: next++, findings: [] });
    },
    close: (model) => void open.delete(model),
    inspect: (model, path) =>
      `{"path":${JSON.stringify(path)},"format":"fake","version":null,"file_size":${text(open.get(model)).length},"checked":true,` +
      `"attributes":{"big":18446744073709551615,"text":"bigint:1234567890123456"},` +
      `"tensors":[{"name":"w","dtype":"f32","shape":[2,2],"layout":"dense","supported":true,"parts":[]}]}`,
    verify(path, options, share) {
      const what = text(path);
      isFirst ||= share.index === 0;
      if (what.startsWith("helper dies") && !isFirst) process.exit(3);
      if (what.startsWith("helper hangs") && !isFirst) for (;;) core.onProgress(1, 2);
      if (what.startsWith("helper") || what.startsWith("shared")) {
        // The structure has one finding before and one after those of payload.
        const found = (rule, offset) => ({ rule, severity: "error", kind: "malformed", message: rule, offset, file: null,
          tensor: null, expected: null, found: null });
        const own = [found("payload", 100 - share.index), found("payload", 200 + share.index)];
        const findings = share.index > 0 ? own : [found("index", 7), ...own, found("tail", 9)];
        const bytes = what.includes("little") ? 1000 : 1e6;
        for (let i = 0; i <= 100; i++) core.onProgress((100 * (share.of - 1) + i) * bytes, 100 * share.of * bytes);
        const verdict = { path, format: "fake", valid: false, findings };
        const identity = what.includes("replaced") ? String(share.index) : "1";
        return JSON.stringify({ verdict, shares: share.of, identity, payload: [1, 3] });
      }
      if (what.startsWith("trap")) throw new WebAssembly.RuntimeError("unreachable");
      if (what.startsWith("memory")) throw new WebAssembly.RuntimeError("memory access out of bounds");
      if (what.startsWith("exit")) process.exit(3);
      if (what.startsWith("hang")) for (;;) core.onProgress(1, 2);
      if (what.startsWith("progress")) for (let i = 1; i <= 100000; i++) core.onProgress(i, 100000);
      const valid = !what.startsWith("bad");
      return JSON.stringify({ verdict: { path, format: "fake", valid, findings: [] }, shares: 1, identity: "1", payload: [0, 0] });
    },
    hash: (model, path) => JSON.stringify({ path, format: "fake", of: "content", digest: "00" }),
    rows: (model, tensor, first, count) =>
      open.has(model) ? new Float32Array(16).subarray(4, 4 + 2 * count).fill(first) : failure("misuse", "closed"),
    read: () => ({ dtype: "f32", shape: [2, 2], bytes: new Uint8Array(new Float32Array([1, 2, 3, 4]).buffer) }),
    plan: (model, path, to) =>
      JSON.stringify({ plan: next++, schema: 3, path: "x", format: "fake", output: "", to, possible: true }),
    execute(plan, source, path) {
      const at = path.lastIndexOf("/");
      const temporary = FS.create(`${path.slice(0, at)}/.temporary`);
      const big = new Uint8Array(9 * 1024 * 1024).fill(7);
      FS.write(temporary, big, 0);
      FS.write(temporary, new Uint8Array([1, 2]), 0);
      FS.nodes.delete(`${temporary.parent.id}/.temporary`);
      temporary.node_ops.rename(temporary, temporary.parent, path.slice(at + 1));
      if (path.endsWith(".stb")) FS.write(FS.create(`${path}.json`), new Uint8Array([123]), 0);
      return JSON.stringify({ schema: 3, written: true, losses: [], changes: [], casts: [] });
    },
    closePlan() {},
    generator: () => JSON.stringify({ generator: next++, vocabulary: 3, context: 100 }),
    generate(generator, prompt) {
      open.set(next, { prompt, left: prompt === "endless" ? Infinity : 3, tokens: 0 });
      return JSON.stringify({ generation: next++, prompt_tokens: 1 });
    },
    next(generation) {
      const state = open.get(generation);
      state.tokens++;
      const done = --state.left === 0;
      const result = { prompt_tokens: 1, tokens: [1, 1, 1], text: "aaa", stopped: "length", precision: "exact", tokens_per_second: 1 };
      return JSON.stringify({ text: "a", tokens: state.tokens, done, ...(done ? { result } : {}) });
    },
    closeGeneration: (generation) => void open.delete(generation),
    closeGenerator() {},
  };
  return core;
}
