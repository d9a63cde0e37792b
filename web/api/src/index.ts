// SPDX-License-Identifier: Apache-2.0
// What the package exports.

export { Weighbridge } from "./weighbridge.js";
export { Model } from "./model.js";
export { Plan, Written } from "./plan.js";
export { Output } from "./output.js";
export { Embedder } from "./embedder.js";
export { Generator } from "./generator.js";
export { WeighbridgeError } from "./errors.js";
export type { Failure } from "./errors.js";
export type * from "./types.js";
