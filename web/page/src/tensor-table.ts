// SPDX-License-Identifier: Apache-2.0
// <wb-tensor-table>: the tensors of a model.

import type { TensorInfo } from "./api.js";
import { grouped, plural, shape, size, sizeText } from "./format-numbers.js";
import { GridTable, padded, type Column } from "./grid-table.js";

export const storedBytes = (tensor: TensorInfo): number =>
  tensor.stored?.bytes ?? tensor.parts.reduce((sum, part) => sum + (part.length ?? 0), 0);

/** How the file stores the elements: their dtype, or for a weight of codes "fp8 128x128". */
const elements = ({ dtype, stored }: TensorInfo): string => stored?.name ?? dtype;

function layoutText({ layout, stored, supported, scheme }: TensorInfo): string {
  if (stored) return `of ${plural(stored.tensors.length, "tensor")}`;
  if (!supported) return "unsupported";
  return scheme ? `${layout}, ${scheme.name}` : layout;
}

const firstOffset = (tensor: TensorInfo): number =>
  tensor.parts.reduce((first, part) => Math.min(first, part.offset ?? Infinity), Infinity);

const COLUMNS: Column<TensorInfo>[] = [
  { key: "name", label: "Name", rank: ({ name }) => padded(name) },
  { key: "dtype", label: "Dtype", cell: elements, rank: elements },
  { key: "shape", label: "Shape", cell: (tensor) => shape(tensor.shape),
    rank: ({ shape: dims }) => padded(dims?.join(" ") ?? "") },
  { key: "size", label: "Size", numeric: true, cell: (tensor) => sizeText(storedBytes(tensor)),
    rank: storedBytes },
  { key: "layout", label: "Layout", cell: layoutText, rank: ({ layout }) => layout },
  { key: "offset", label: "Offset", numeric: true,
    cell: (tensor) => (Number.isFinite(firstOffset(tensor)) ? grouped(firstOffset(tensor)) : "–"),
    rank: firstOffset },
];

const bytesOf = (tensors: readonly TensorInfo[]): string =>
  size(tensors.reduce((sum, tensor) => sum + storedBytes(tensor), 0));

export class TensorTable extends GridTable<TensorInfo> {
  constructor() {
    super({ label: "Tensors", columns: COLUMNS, searchLabel: "Search tensors by name", filterLabel: "Filter by dtype",
      every: "Every dtype", names: ({ name }) => name, kinds: (tensor) => [elements(tensor)],
      count: (shown, all) => (shown.length === all ? `${plural(all, "tensor")}, ${bytesOf(shown)}`
        : `${grouped(shown.length)} of ${plural(all, "tensor")}, ${bytesOf(shown)}`),
      none: "This file holds no tensors." });
  }
}

customElements.define("wb-tensor-table", TensorTable);
