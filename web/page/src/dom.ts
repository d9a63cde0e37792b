// SPDX-License-Identifier: Apache-2.0
// Making elements. Text reaches the page as text nodes and nothing else: there is no way here to pass markup, which is
// what keeps names and messages out of files harmless. What would be invisible, or turn the text around, is spelt out.

export type Child = Node | string | number | null | undefined | false;

type Handler = (event: never) => void;
type Value = string | number | boolean | null | undefined | Handler;

/** Attributes by name; `onclick` and its like are listeners; true and false put an attribute in or leave it out. */
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

/** The button that the page uses everywhere; `kind` is one of the classes of style.css. */
export function button(text: string, onclick: () => void, kind = "", props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", class: `button ${kind}`, onclick, ...props }, text);
}

let labels = 0;

/** A control with its label above it and, where there is one, a hint under it. */
export function field(label: string, control: HTMLElement, hint = ""): HTMLElement {
  labels += 1;
  control.id ||= `field-${labels}`;
  const note = hint ? h("span", { class: "hint", id: `${control.id}-hint` }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, note);
}

/** Rows of a term and what it is, as a description list. */
export function facts(rows: [string, Child][], kind = ""): HTMLElement {
  return h("dl", { class: `facts ${kind}` },
    ...rows.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}

/** The same as small blocks, the term above its value. */
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

// Control characters but tab and line feed, and those that change the direction of what stands around them.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

const spelt = (text: string): string =>
  text.replace(HIDDEN, (character) => `‹U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);

function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      parent.append(child instanceof Node ? child : spelt(String(child)));
    }
  }
}
