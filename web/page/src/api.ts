// SPDX-License-Identifier: Apache-2.0
// The only place with the path of the package: beside the page, as in the source tree. The page and the package are
// compiled separately and meet in the browser.

export * from "../api/dist/index.js";
