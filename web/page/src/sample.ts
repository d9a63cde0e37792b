// SPDX-License-Identifier: Apache-2.0
// Makes a small safetensors file in memory, for users who have none. Its values come from a fixed formula, so the
// sample is always the same.

interface Part {
  name: string;
  shape: number[];
  values: Float32Array;
}

/** A linear congruential generator: reproducible, and uniform enough to look at. */
function noise(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function normal(count: number, seed: number, scale: number): Float32Array {
  const next = noise(seed);
  return Float32Array.from({ length: count }, () =>
    scale * Math.sqrt(-2 * Math.log(next() + 1e-9)) * Math.cos(2 * Math.PI * next()));
}

function waves(rows: number, columns: number): Float32Array {
  return Float32Array.from({ length: rows * columns }, (_, at) => {
    const row = Math.floor(at / columns);
    const column = at % columns;
    const angle = row / 10000 ** ((column - (column % 2)) / columns);
    return column % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
  });
}

export function sampleFile(): File {
  const parts: Part[] = [
    { name: "embeddings.position.weight", shape: [96, 64], values: waves(96, 64) },
    { name: "embeddings.word.weight", shape: [128, 64], values: normal(128 * 64, 7, 0.04) },
    { name: "layer.0.conv.weight", shape: [16, 8, 3, 3], values: normal(16 * 8 * 9, 11, 0.2) },
    { name: "layer.0.linear.bias", shape: [64], values: new Float32Array(64) },
    { name: "layer.0.linear.weight", shape: [64, 64], values: normal(64 * 64, 13, 0.125) },
    { name: "layer.0.norm.weight", shape: [64], values: new Float32Array(64).fill(1) },
  ];
  const header: Record<string, unknown> = { __metadata__: { format: "pt", made_by: "weighbridge, in this page" } };
  let at = 0;
  for (const { name, shape, values } of parts) {
    header[name] = { dtype: "F32", shape, data_offsets: [at, at + values.byteLength] };
    at += values.byteLength;
  }
  const text = JSON.stringify(header);
  const json = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8, " "));
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(json.length), true);
  const payload = parts.map(({ values }) => new Uint8Array(values.buffer as ArrayBuffer));
  return new File([length, json, ...payload], "sample.safetensors", { lastModified: 0 });
}
