// SPDX-License-Identifier: Apache-2.0
// The sizes of a model by layer: tensors whose names begin alike, up to their first number. Layers that are alike in size
// are one row, as in `weighbridge inspect --tree`: model.layers.{0..31}.

import type { TensorInfo } from "./api.js";

export interface LayerRow {
  name: string;
  /** How many layers are alike, and the bytes and tensors of each. */
  layers: number;
  bytes: number;
  tensors: number;
}

/** The beginning of a name and the number of its layer: ["model.layers.", 3]; without a number, the first words. */
function layerOf(name: string): [string, number | null] {
  const numbered = /^(?:[^./]*[./])*?(?=(\d{1,9})(?:[./]|$))/.exec(name);
  if (numbered) return [numbered[0], Number(numbered[1])];
  const words = /^[^./]*(?:[./][^./]*(?=[./]))?/.exec(name);
  return [words?.[0] ?? name, null];
}

/** "{0..5}", "{0,2,4..6}"; one number is itself. */
function numbersText(numbers: number[]): string {
  const runs: [number, number][] = [];
  for (const number of numbers.sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && number <= last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  const texts = runs.map(([from, to]) => (from === to ? `${from}` : `${from}..${to}`));
  if (numbers.length === 1) return texts[0] as string;
  return `{${(texts.length > 3 ? [...texts.slice(0, 2), "...", texts.at(-1)] : texts).join(",")}}`;
}

/** The rows in the order of the tensors; `bytes` is the size of one. */
export function layerRows(tensors: readonly TensorInfo[], bytes: (tensor: TensorInfo) => number): LayerRow[] {
  const layers = new Map<string, { start: string; number: number | null; bytes: number; tensors: number }>();
  for (const tensor of tensors) {
    const [start, number] = layerOf(tensor.name);
    const key = `${start}\n${number}`;
    const layer = layers.get(key) ?? { start, number, bytes: 0, tensors: 0 };
    layers.set(key, layer);
    layer.bytes += bytes(tensor);
    layer.tensors += 1;
  }
  const alike = new Map<string, { start: string; numbers: number[]; bytes: number; tensors: number }>();
  for (const { start, number, bytes: size, tensors: count } of layers.values()) {
    const key = number === null ? start : `${start}\n${size} ${count}`;
    const group = alike.get(key) ?? { start, numbers: [], bytes: size, tensors: count };
    alike.set(key, group);
    if (number !== null) group.numbers.push(number);
  }
  return [...alike.values()].map(({ start, numbers, ...each }) =>
    ({ ...each, name: numbers.length > 0 ? start + numbersText(numbers) : start, layers: Math.max(1, numbers.length) }));
}
