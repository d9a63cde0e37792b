// SPDX-License-Identifier: Apache-2.0
// The one place that says where the package lies: beside the page, as it does in the source tree. The page and the
// package are compiled by themselves and meet in the browser.

export * from "../api/dist/index.js";
