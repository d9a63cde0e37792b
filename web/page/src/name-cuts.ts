// SPDX-License-Identifier: Apache-2.0
// Cuts names to a number of columns as the command does (cli/cuts.cc): all alike first, in their middle. Names that then
// look the same are cut again, around the part in which they differ.

const DOTS = "...";

const isAscii = (text: string): boolean => /^[ -~]*$/.test(text);
const segments = new Intl.Segmenter();
const characters = (text: string): string[] =>
  (isAscii(text) ? text.split("") : [...segments.segment(text)].map(({ segment }) => segment));
/** The columns of a character: those after the ones of Europe take two. */
const columnsOf = (character: string): number => (character.charCodeAt(0) < 0x1100 ? 1 : 2);
const width = (text: string): number =>
  (isAscii(text) ? text.length : characters(text).reduce((sum, character) => sum + columnsOf(character), 0));

/** Both ends of a text. The end of a name tells more than its beginning, so it gets more room. */
function fitted(text: string, columns: number): string {
  if (width(text) <= columns || columns < DOTS.length + 2) return text;
  const tail = Math.floor(((columns - DOTS.length) * 3) / 5);
  const all = characters(text);
  const take = (from: string[], room: number): string[] => {
    let left = room;
    const end = from.findIndex((character) => (left -= columnsOf(character)) < 0);
    return from.slice(0, end < 0 ? from.length : end);
  };
  return take(all, columns - DOTS.length - tail).join("") + DOTS + take(all.reverse(), tail).reverse().join("");
}

/** Where the texts begin to differ, moved back to the start of a word or number, and how long their common end is. */
function commonEnds(texts: readonly string[]): [number, number] {
  const first = texts[0] as string;
  let begin = first.length;
  let end = first.length;
  for (const text of texts) {
    let at = 0;
    while (at < begin && text[at] === first[at]) at += 1;
    begin = at;
    at = 0;
    while (at < Math.min(end, text.length) && text[text.length - 1 - at] === first[first.length - 1 - at]) at += 1;
    end = at;
  }
  while (begin > 0 && !"._/[ ,".includes(first[begin - 1] as string)) begin -= 1;
  return [begin, end];
}

/** "head...what differs...tail", the head short; the text itself if that does not fit. */
function cutAround(text: string, begin: number, end: number, columns: number): string {
  const differs = text.length - Math.min(text.length, begin + end);
  const head = Math.min(begin, 4);
  if (columns < head + 2 * DOTS.length + differs) return text;
  const room = columns - head - differs - DOTS.length;
  if (begin <= head + DOTS.length || room >= end) { // one gap is enough
    return text.slice(0, head) + DOTS + text.slice(text.length - Math.min(text.length - head, columns - head - DOTS.length));
  }
  return text.slice(0, head) + DOTS + text.slice(begin, begin + differs) + DOTS + text.slice(text.length - (room - DOTS.length));
}

/** Drops words that all texts of a group share: "...0...query.weight". The texts have the same number of words. */
function sharedWords(texts: readonly string[]): (text: string, columns: number) => string {
  const split = texts.map((text) => text.split("."));
  const shared = split[0]?.map((word, at) => split.every((words) => words[at] === word)) ?? [];
  const joined = (words: readonly string[], kept: readonly boolean[]): string => words.map((word, at) =>
    (kept[at] ? (at > 0 && kept[at - 1] ? "." : "") + word : at === 0 || kept[at - 1] ? DOTS : "")).join("");
  return (text, columns) => {
    const words = text.split(".");
    const kept = shared.map((is) => !is);
    if (joined(words, kept).length > columns) return "";
    for (let at = words.length - 1; at >= 0; at -= 1) { // keeps what fits of the shared words, from the end on
      if (kept[at]) continue;
      kept[at] = true;
      if (joined(words, kept).length > columns) kept[at] = false;
    }
    return joined(words, kept);
  };
}

function groupBy<K>(texts: Iterable<string>, key: (text: string) => K): Map<K, string[]> {
  const groups = new Map<K, string[]>();
  for (const text of texts) {
    const group = groups.get(key(text));
    if (group) group.push(text);
    else groups.set(key(text), [text]);
  }
  return groups;
}

export class Cuts {
  readonly columns: number;
  readonly #cut = new Map<string, string>();

  constructor(texts: readonly string[], columns: number) {
    this.columns = columns;
    const all = [...new Set(texts)];
    const taken = new Set(all.filter((text) => width(text) <= columns));
    const settle = (text: string, cut: string): boolean => {
      if (cut === "" || taken.has(cut)) return false;
      taken.add(cut);
      this.#cut.set(text, cut);
      return true;
    };
    const again: string[][] = [];
    for (const [cut, group] of groupBy(all.filter((text) => !taken.has(text)), (text) => fitted(text, columns))) {
      if (group.length > 1 || !settle(group[0] as string, cut)) again.push(group);
    }
    /** Returns what it could not tell apart. */
    const cutAgain = (group: string[]): string[] => {
      const [begin, end] = commonEnds(group);
      return [...groupBy(group, (text) => text.split(".").length).values()].flatMap((same) => {
        const cutWords = sharedWords(same);
        return same.filter(isAscii).filter((text) => {
          const around = cutAround(text, begin, end, columns);
          return !settle(text, around === text ? cutWords(text, columns) : around);
        });
      });
    };
    // Two groups may come to the same cuts. The command leaves such names whole; here there is no room for that.
    const left = again.flatMap(cutAgain);
    if (left.length > 0) cutAgain(left);
  }

  /** The cut of one of the texts; the text itself if it fits, or if no cut would tell it apart. */
  of(text: string): string {
    return this.#cut.get(text) ?? text;
  }
}
