// SPDX-License-Identifier: Apache-2.0
// Names that may be too long for their place. They lose their middle, since the end of a name often says what it is
// (".weight", "-00002-of-00003.safetensors"). The element around them has the class "long-name" and, for screen readers
// and as its title, the whole name. In tables, name-cuts.ts cuts them.

import { h, spelled, type Child } from "./dom.js";

/** Where a name is longer than this, its middle is left out altogether; no screen has room for more. */
const LONGEST = 500;

/** How many columns at the end stay, however narrow the place; style.css has the same number. */
const END = 12;

/** What must not begin a part: the second half of a character, a mark on one, or a blank, which the layout would drop. */
const BOUND = /^[\udc00-\udfff\p{M}\u200d\s]/u;

/** Where to divide a name: at `at`, or a little after it, so that neither side is harmed. */
function divide(name: string, at: number): number {
  const last = Math.min(name.length, at + 50);
  for (let to = at; to < last; to += 1) {
    if (to > 0 && !BOUND.test(name.slice(to, to + 2)) && !/[\s\u200d]/.test(name[to - 1] as string)) return to;
  }
  return last;
}

/** The place from which on a name takes END columns, if characters after those of Europe take two. */
function endOf(name: string): number {
  let at = name.length;
  for (let columns = 0; at > 0 && columns < END; at -= 1) columns += name.charCodeAt(at - 1) < 0x1100 ? 1 : 2;
  return at;
}

/** A name as it is shown, of about `longest` characters at most: both ends, and "…" between them. */
export function cut(whole: string, longest = LONGEST): string {
  const name = spelled(whole);
  if (name.length <= longest) return name;
  const half = Math.floor(longest / 2);
  return `${name.slice(0, divide(name, half))}…${name.slice(divide(name, name.length - half))}`;
}

/** The name as children of an element with the class "long-name": its start, which shrinks, and its end. */
export function longName(whole: string): Child[] {
  const name = cut(whole);
  const at = divide(name, endOf(name));
  return at >= name.length || name.length <= END ? [name] : [h("span", { class: "name-start" }, name.slice(0, at)), h("span", { class: "name-end" }, name.slice(at))];
}
