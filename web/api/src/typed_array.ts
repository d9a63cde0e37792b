// SPDX-License-Identifier: Apache-2.0
// The bytes of a tensor as the typed array of its dtype.

import type { TypedArray } from "./types.js";

const kArrays: { readonly [dtype: string]: new (buffer: ArrayBuffer) => TypedArray } = {
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f32: Float32Array,
  f64: Float64Array,
};

/** A view of the same bytes, or null. `bytes` must cover its whole buffer, as arrays from the worker do. */
export function typedArray(dtype: string, bytes: Uint8Array): TypedArray | null {
  const array = Object.hasOwn(kArrays, dtype) ? kArrays[dtype] : undefined;
  return array === undefined ? null : new array(bytes.buffer as ArrayBuffer);
}
