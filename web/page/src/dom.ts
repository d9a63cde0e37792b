// SPDX-License-Identifier: Apache-2.0
// Creates elements. Text reaches the page only as text nodes, never as markup, so names and messages from files are
// harmless. Invisible characters and those that change the text direction are escaped.

export type Child = Node | string | number | null | undefined | false;

type Handler = (event: never) => void;
type Value = string | number | boolean | null | undefined | Handler;

/** Attributes by name; `onclick` and the like are listeners; true and false set or omit an attribute. */
export type Props = Record<string, Value>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]):
    HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  append(element, children);
  return element;
}

export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(element, props);
  append(element, children);
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** The standard button; `kind` is a class of style.css. */
export function button(text: string, onclick: () => void, kind = "", props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", class: `button ${kind}`, onclick, ...props }, text);
}

let labels = 0;

/** A control with a label above it and optionally a hint below it. */
export function field(label: string, control: HTMLElement, hint = ""): HTMLElement {
  labels += 1;
  control.id ||= `field-${labels}`;
  const note = hint ? h("span", { class: "hint", id: `${control.id}-hint` }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, note);
}

/** A description list with one row per term. */
export function facts(rows: [string, Child][], kind = ""): HTMLElement {
  return h("dl", { class: `facts ${kind}` },
    ...rows.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}

/** The same as small blocks, each term above its value. */
export function tiles(rows: [string, Child][]): HTMLElement {
  return h("dl", { class: "tiles" },
    ...rows.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))));
}

function apply(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

// Control characters other than tab and line feed, and those that change the text direction.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

export const spelled = (text: string): string =>
  text.replace(HIDDEN, (character) => `‹U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);

function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      parent.append(child instanceof Node ? child : spelled(String(child)));
    }
  }
}
