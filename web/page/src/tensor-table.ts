// SPDX-License-Identifier: Apache-2.0
// <wb-tensor-table>: the tensors of a model.

import type { TensorInfo } from "./api.js";
import { grouped, plural, shape, size, sizeText } from "./format-numbers.js";
import { GridTable, padded, type Column } from "./grid-table.js";

export const storedBytes = (tensor: TensorInfo): number =>
  tensor.parts.reduce((sum, part) => sum + (part.length ?? 0), 0);

const firstOffset = (tensor: TensorInfo): number =>
  tensor.parts.reduce((first, part) => Math.min(first, part.offset ?? Infinity), Infinity);

const COLUMNS: Column<TensorInfo>[] = [
  { key: "name", label: "Name", rank: ({ name }) => padded(name) },
  { key: "dtype", label: "Dtype", cell: (tensor) => tensor.dtype, rank: ({ dtype }) => dtype },
  { key: "shape", label: "Shape", cell: (tensor) => shape(tensor.shape),
    rank: ({ shape: dims }) => padded(dims?.join(" ") ?? "") },
  { key: "size", label: "Size", numeric: true, cell: (tensor) => sizeText(storedBytes(tensor)),
    rank: storedBytes },
  { key: "layout", label: "Layout", cell: (tensor) => (!tensor.supported ? "unsupported"
      : tensor.scheme ? `${tensor.layout}, ${tensor.scheme.name}` : tensor.layout),
    rank: ({ layout }) => layout },
  { key: "offset", label: "Offset", numeric: true,
    cell: (tensor) => (Number.isFinite(firstOffset(tensor)) ? grouped(firstOffset(tensor)) : "–"),
    rank: firstOffset },
];

const bytesOf = (tensors: readonly TensorInfo[]): string =>
  size(tensors.reduce((sum, tensor) => sum + storedBytes(tensor), 0));

export class TensorTable extends GridTable<TensorInfo> {
  constructor() {
    super({ label: "Tensors", columns: COLUMNS, searchLabel: "Search tensors by name", filterLabel: "Filter by dtype",
      every: "Every dtype", names: ({ name }) => name, kinds: ({ dtype }) => [dtype],
      count: (shown, all) => (shown.length === all ? `${plural(all, "tensor")}, ${bytesOf(shown)}`
        : `${grouped(shown.length)} of ${plural(all, "tensor")}, ${bytesOf(shown)}`),
      none: "This file holds no tensors." });
  }
}

customElements.define("wb-tensor-table", TensorTable);
