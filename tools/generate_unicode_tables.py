#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/tokenizers/unicode_tables_generated.h, unicode_classes_generated.h and unicode_steps_generated.h from the Unicode
Character Database (Debian's package unicode-data).

The classes are those that regular expressions ask for: letters, numbers and so on. The tables describe the Hugging Face normalizer of BERT, whose parts have different ages: general categories of Unicode 8.0,
canonical decompositions and combining classes of 9.0, lower case of 17.0. A character newer than a part counts as unassigned
there. Later changes to older characters, and data newer than Debian's database, are listed below with a reason.

The tables of steps are for normalizers and pre-tokenizers other than BERT's: canonical compositions and combining marks of 9.0, and
word characters of 16.0. tests/interop/test_wordpiece.py compares all of them with the package tokenizers.

With --check nothing is written; the exit status is 1 if the file differs from what would be written, 77 if this machine has another
version of the database. With --oracle FILE (the reference's result for "a", a character and "b", for every character) the tables are
first compared with it.
"""
import argparse
import json
import pathlib
import re
import sys

TARGET = pathlib.Path(__file__).resolve().parent.parent / "src/tokenizers/unicode_tables_generated.h"
CLASSES_TARGET = TARGET.with_name("unicode_classes_generated.h")
STEPS_TARGET = TARGET.with_name("unicode_steps_generated.h")
DATABASE = "15.0.0"
CATEGORIES_OF, NORMALIZATION_OF = (8, 0), (9, 0)
BLOCK = 64  # characters in a block of the second stage
LAST = 0x10FFFF

# Categories of Unicode 8.0 that later versions changed.
CATEGORY_THEN = {
    0x166D: ("Po", "CANADIAN SYLLABICS CHI SIGN: a symbol since 12.0"),
    0x1734: ("Mn", "HANUNOO SIGN PAMUDPOD: a spacing mark since 14.0"),
    0x1885: ("Lo", "MONGOLIAN LETTER ALI GALI BALUDA: a nonspacing mark since 9.0"),
    0x1886: ("Lo", "MONGOLIAN LETTER ALI GALI THREE BALUDA: a nonspacing mark since 9.0"),
    0xA9BD: ("Mc", "JAVANESE CONSONANT SIGN KERET: a nonspacing mark since 11.0"),
    0x111C9: ("Po", "SHARADA SANDHI MARK: a nonspacing mark since 11.0"),
}
# Lower case newer than the database: (first, last, distance, step between the characters, version).
LOWER_SINCE = [
    (0x1C89, 0x1C89, 1, 1, "16.0"),
    (0xA7CB, 0xA7CB, 0x264 - 0xA7CB, 1, "16.0"),
    (0xA7CC, 0xA7CC, 1, 1, "16.0"),
    (0xA7CE, 0xA7CE, 1, 1, "17.0"),
    (0xA7D2, 0xA7D4, 1, 2, "17.0"),
    (0xA7DA, 0xA7DA, 1, 1, "16.0"),
    (0xA7DC, 0xA7DC, 0x19B - 0xA7DC, 1, "16.0"),
    (0x10D50, 0x10D65, 0x20, 1, "16.0"),
    (0x16EA0, 0x16EB8, 0x1B, 1, "17.0"),
]
# Combining marks of Unicode 9.0 that later versions made letters.
MARK_THEN = {0x1CF2: "VEDIC SIGN ARDHAVISARGA: a letter since 12.0", 0x1CF3: "VEDIC SIGN ROTATED ARDHAVISARGA: a letter since 12.0"}
# Characters of words newer than the database: (first, last, version).
WORD_SINCE = [
    (0x897, 0x897, "16.0"), (0x1C89, 0x1C8A, "16.0"), (0xA7CB, 0xA7CD, "16.0"), (0xA7DA, 0xA7DC, "16.0"), (0x105C0, 0x105F3, "16.0"),
    (0x10D40, 0x10D65, "16.0"), (0x10D69, 0x10D6D, "16.0"), (0x10D6F, 0x10D85, "16.0"), (0x10EC2, 0x10EC4, "16.0"),
    (0x10EFC, 0x10EFC, "16.0"), (0x11380, 0x11389, "16.0"), (0x1138B, 0x1138B, "16.0"), (0x1138E, 0x1138E, "16.0"),
    (0x11390, 0x113B5, "16.0"), (0x113B7, 0x113C0, "16.0"), (0x113C2, 0x113C2, "16.0"), (0x113C5, 0x113C5, "16.0"),
    (0x113C7, 0x113CA, "16.0"), (0x113CC, 0x113D3, "16.0"), (0x113E1, 0x113E2, "16.0"), (0x116D0, 0x116E3, "16.0"),
    (0x11BC0, 0x11BE0, "16.0"), (0x11BF0, 0x11BF9, "16.0"), (0x11F5A, 0x11F5A, "16.0"), (0x13460, 0x143FA, "16.0"),
    (0x16100, 0x16139, "16.0"), (0x16D40, 0x16D6C, "16.0"), (0x16D70, 0x16D79, "16.0"), (0x18CFF, 0x18CFF, "16.0"),
    (0x1CCF0, 0x1CCF9, "16.0"), (0x1E5D0, 0x1E5FA, "16.0"), (0x2EBF0, 0x2EE5D, "15.1"),
]
# What the reference treats as a Chinese character; the gap from U+2B820 is also in the reference.
CHINESE_RANGES = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
                  (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)]
CHINESE = {c for first, last in CHINESE_RANGES for c in range(first, last + 1)}
SURROGATES = range(0xD800, 0xE000)
HANGUL = range(0xAC00, 0xD7A4)

FLAGS = {
    "kRemoved": (1, "deleted by the cleaning: control, format and private-use characters, U+0000, U+FFFD"),
    "kSpace": (2, "white space: ends a word"),
    "kPunctuation": (4, "a word of its own"),
    "kChinese": (8, "set between spaces where that is asked for"),
    "kMark": (16, "a nonspacing mark: deleted where accents are stripped"),
    "kDecomposes": (32, "has a canonical decomposition"),
    "kReorders": (64, "a combining class other than 0, and no kMark: may change places with its neighbors"),
    "kHasLower": (128, "has a lower case"),
}


def rows(path):
    """The fields of each line of a UCD file that has fields."""
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.split("#")[0].split(";")]
        if len(fields) > 1:
            yield fields


def code_points(field):
    first, _, last = field.partition("..")
    return range(int(first, 16), int(last or first, 16) + 1)


class Database:
    """The data of the database, and its view from the three Unicode versions of the reference."""

    def __init__(self, folder):
        self.categories, self.classes, self.decompositions, self.lower = {}, {}, {}, {}
        first = None
        for fields in rows(folder / "UnicodeData.txt"):
            c = int(fields[0], 16)
            for each in range(first if first is not None else c, c + 1):
                self.categories[each] = fields[2]
            first = c if fields[1].endswith(", First>") else None
            if fields[3] != "0":
                self.classes[c] = int(fields[3])
            if fields[5] and not fields[5].startswith("<"):
                self.decompositions[c] = [int(x, 16) for x in fields[5].split()]
            if fields[13]:
                self.lower[c] = int(fields[13], 16)
        self.ages = {c: tuple(map(int, fields[1].split(".")))
                     for fields in rows(folder / "DerivedAge.txt") for c in code_points(fields[0])}
        self.spaces = {c for fields in rows(folder / "PropList.txt") if fields[1] == "White_Space"
                       for c in code_points(fields[0])}
        for start, end, distance, step, _ in LOWER_SINCE:
            for c in range(start, end + 1, step):
                if c in self.lower:
                    raise SystemExit(f"U+{c:04X} has a lower case in the database: no exception is needed")
                self.lower[c] = c + distance

    def known(self, c, version):
        return self.ages.get(c, (99, 0)) <= version

    def category(self, c):
        if c in CATEGORY_THEN:
            return CATEGORY_THEN[c][0]
        return self.categories.get(c, "Cn") if self.known(c, CATEGORIES_OF) else "Cn"

    def combining_class(self, c):
        return self.classes.get(c, 0) if self.known(c, NORMALIZATION_OF) else 0

    def decomposition(self, c):
        """The full canonical decomposition, except of Hangul syllables, which are computed."""
        if c not in self.decompositions or not self.known(c, NORMALIZATION_OF):
            return [c]
        return [y for x in self.decompositions[c] for y in self.decomposition(x)]

    def flags(self, c):
        category = self.category(c)
        names = set()
        if c in (0, 0xFFFD) or (category in ("Cc", "Cf", "Co") and chr(c) not in "\t\n\r"):
            names.add("kRemoved")
        elif c in self.spaces:
            names.add("kSpace")
        if category.startswith("P") or (0x20 < c < 0x7F and not chr(c).isalnum()):
            names.add("kPunctuation")
        if c in CHINESE:
            names.add("kChinese")
        if category == "Mn":
            names.add("kMark")
        elif self.combining_class(c):
            names.add("kReorders")
        if self.decomposition(c) != [c] or c in HANGUL:
            names.add("kDecomposes")
        if c in self.lower:
            names.add("kHasLower")
        return names

    def check(self):
        """Checks what the code that reads the tables assumes."""
        for c in self.decompositions:
            parts = self.decomposition(c)
            classes = [self.combining_class(x) for x in parts]
            zeros = [k for k, value in enumerate(classes) if value == 0]
            if zeros and zeros[-1] != len(zeros) - 1:
                raise SystemExit(f"U+{c:04X}: characters of class 0 do not come first in its decomposition")
            if c in CHINESE and len(parts) != 1:
                raise SystemExit(f"U+{c:04X}: a Chinese character that becomes several")
            if sum(self.category(x) != "Mn" for x in parts) > len(chr(c).encode()):
                raise SystemExit(f"U+{c:04X}: more characters stay of its decomposition than it has bytes")
        for c, to in self.lower.items():
            if c >= 0x80 > to and c not in (0x130, 0x212A):
                raise SystemExit(f"U+{c:04X}: a lower case in ASCII that nobody expects")


def answer(database, c):
    """The expected result of the reference for a character between "a" and "b", in the oracle's terms, and the resulting text."""
    flags = database.flags(c)
    if c in SURROGATES:
        return "surrogate", ""
    if "kRemoved" in flags:
        return "removed", ""
    if "kSpace" in flags:
        return "space", " "
    if c in HANGUL:
        s, parts = c - HANGUL.start, []
        parts = [0x1100 + s // 588, 0x1161 + s % 588 // 28] + ([0x11A7 + s % 28] if s % 28 else [])
    else:
        parts = [x for x in database.decomposition(c) if "kMark" not in database.flags(x)]
    parts = [database.lower.get(x, x) for x in parts]
    text = "".join(map(chr, parts))
    if not text:
        return "removed", ""
    split = "kChinese" in flags or any("kPunctuation" in database.flags(x) for x in parts)
    if parts == [c]:
        return ("cjk_spaced" if "kChinese" in flags else "keep_split3" if split else "keep"), text
    return ("map_split3" if split else "map"), text


def compare(database, path):
    oracle = json.loads(path.read_text(encoding="utf-8"))
    texts = {int(key, 16): value for key, value in oracle["map"].items()}
    wrong = 0
    for first, last, kind in oracle["runs"]:
        for c in range(int(first, 16), int(last, 16) + 1):
            ours, text = answer(database, c)
            if ours != kind or (c in texts and texts[c] != text and texts[c].strip() != text):
                wrong += 1
                print(f"U+{c:04X}: the oracle says {kind} {texts.get(c, '')!r}, the tables {ours} {text!r}")
    if wrong:
        raise SystemExit(f"{wrong} characters differ from the oracle")


def numbers(values):
    lines, line = [], "   "
    for value in values:
        cell = f" {value},"
        if len(line) + len(cell) > 118:
            lines.append(line)
            line = "   "
        line += cell
    return "\n".join(lines + [line])


def staged(records):
    """Two-stage tables: the block of a character, and the record of each character of a block."""
    blocks, first_stage, second_stage = {}, [], []
    for start in range(0, LAST + 1, BLOCK):
        block = tuple(records[start:start + BLOCK])
        if block not in blocks:
            blocks[block] = len(blocks)
            second_stage += block
        first_stage.append(blocks[block])
    return first_stage, second_stage


def generate(folder, oracle):
    version = re.match(r"# DerivedAge-(\S+)\.txt", (folder / "DerivedAge.txt").read_text(encoding="utf-8")).group(1)
    if version != DATABASE:
        print(f"the database in {folder} is of version {version}; the exceptions here are for {DATABASE}")
        sys.exit(77)
    database = Database(folder)
    database.check()
    if oracle:
        compare(database, oracle)
    pool, known, of = [], {}, []
    for c in range(LAST + 1):
        if c in SURROGATES:
            of.append(of[-1] if c != SURROGATES.start else known.setdefault((0, 0, 0, 0, 0), len(known)))
            continue
        flags = sum(FLAGS[name][0] for name in database.flags(c))
        parts = database.decomposition(c)
        length = 0 if parts == [c] else len(parts)
        offset = len(pool) if length else 0
        pool += parts if length else []
        key = (flags, database.combining_class(c), length, offset, database.lower.get(c, c) - c)
        of.append(known.setdefault(key, len(known)))
    first_stage, second_stage = staged(of)
    then = "\n".join(f"//   U+{c:04X} {category}  {reason}" for c, (category, reason) in sorted(CATEGORY_THEN.items()))
    since = "\n".join(f"//   U+{a:04X}..U+{b:04X}  {version}" for a, b, _, _, version in LOWER_SINCE)
    flags = "\n".join(f"// {text}\ninline constexpr std::uint8_t {name} = {value};" for name, (value, text) in FLAGS.items())
    return f"""// SPDX-License-Identifier: Apache-2.0
// Generated by tools/generate_unicode_tables.py from the Unicode Character Database {version}; do not edit. See NOTICE.
// What BERT's normalizer needs to know of each character, for the tokenizers: general categories as of Unicode
// 8.0, decompositions and combining classes as of 9.0, lower case as of 17.0.
// Categories that have changed since:
{then}
// Lower case younger than the database:
{since}
// clang-format off
#pragma once
#include <cstdint>

namespace weighbridge::tokenizers {{

{flags}

struct CharacterRecord {{
  std::uint8_t flags, combining_class, decomposition_length;
  std::uint16_t decomposition;  // where it begins in kDecompositions
  std::int32_t lower;           // distance to the lower case
}};

inline constexpr unsigned kBlockBits = {BLOCK.bit_length() - 1};

inline constexpr CharacterRecord kRecords[] = {{
{numbers("{" + ",".join(map(str, key)) + "}" for key in known)}
}};

inline constexpr char32_t kDecompositions[] = {{
{numbers(f"0x{c:X}" for c in pool)}
}};

// The block of each {BLOCK} characters, then the record of each character of a block.
inline constexpr std::uint16_t kBlockOf[] = {{
{numbers(first_stage)}
}};

inline constexpr std::uint16_t kRecordOf[] = {{
{numbers(second_stage)}
}};

}}  // namespace weighbridge::tokenizers
"""


CLASSES = {"kCaseless": 1, "kNumber": 2, "kPunctuationMark": 4, "kSymbol": 8, "kCombining": 16, "kWhite": 32, "kUpper": 64, "kLower": 128}
CATEGORY_CLASS = {"Lu": "kUpper", "Lt": "kUpper", "Ll": "kLower", "L": "kCaseless", "N": "kNumber", "P": "kPunctuationMark", "S": "kSymbol", "M": "kCombining"}


def classes(folder):
    """Where runs of characters of one class begin."""
    database = Database(folder)
    starts, before = [], None
    for c in range(LAST + 1):
        category = database.categories.get(c, "Cn")
        here = CLASSES.get(CATEGORY_CLASS.get(category, CATEGORY_CLASS.get(category[0])), 0) | (CLASSES["kWhite"] if c in database.spaces else 0)
        if here != before:
            starts.append(c << 8 | here)
        before = here
    names = "\n".join(f"inline constexpr std::uint8_t {name} = {value};" for name, value in CLASSES.items())
    return f"""// SPDX-License-Identifier: Apache-2.0
// Generated by tools/generate_unicode_tables.py from the Unicode Character Database {DATABASE}; do not edit. See NOTICE.
// The classes that regular expressions ask for: \\p{{L}} in its three cases, \\p{{N}}, \\p{{P}}, \\p{{S}}, \\p{{M}}, \\s.
// clang-format off
#pragma once
#include <cstdint>

namespace weighbridge::tokenizers {{

{names}

// Where each run of characters of one class begins: the character times 256, and the class.
inline constexpr std::uint32_t kClassRuns[] = {{
{numbers(starts)}
}};

}}  // namespace weighbridge::tokenizers
"""


def runs(characters):
    """First and last of each run of neighbors."""
    out = []
    for c in sorted(characters):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def compositions(folder, database):
    """Pairs of characters that become one, by the second one."""
    excluded = {c for fields in rows(folder / "DerivedNormalizationProps.txt") if fields[1] == "Full_Composition_Exclusion"
                for c in code_points(fields[0])}
    return sorted((*parts, c) for c, parts in database.decompositions.items()
                  if len(parts) == 2 and c not in excluded and database.known(c, NORMALIZATION_OF))


def steps(folder):
    database = Database(folder)
    alphabetic = {c for fields in rows(folder / "DerivedCoreProperties.txt") if fields[1] == "Alphabetic" for c in code_points(fields[0])}
    words = alphabetic | {c for c, category in database.categories.items() if category in ("Mn", "Mc", "Me", "Nd", "Pc")}
    words |= {0x200C, 0x200D} | {c for first, last, _ in WORD_SINCE for c in range(first, last + 1)}
    marks = {c for c, category in database.categories.items()
             if category in ("Mn", "Mc", "Me") and database.known(c, NORMALIZATION_OF) and CATEGORY_THEN.get(c, ("Mn",))[0] != "Po"}
    marks |= set(MARK_THEN)
    pairs = lambda characters: numbers(f"{{0x{first:X},0x{last:X}}}" for first, last in runs(characters))
    then = "\n".join(f"//   U+{c:04X}  {reason}" for c, reason in MARK_THEN.items())
    return f"""// SPDX-License-Identifier: Apache-2.0
// Generated by tools/generate_unicode_tables.py from the Unicode Character Database {DATABASE}; do not edit. See NOTICE.
// For normalizers and pre-tokenizers other than BERT's: canonical compositions and combining marks of Unicode 9.0, and
// word characters of 16.0. Marks that were changed since:
{then}
// clang-format off
#pragma once
#include <cstdint>

namespace weighbridge::tokenizers {{

struct CharacterRun {{
  char32_t first, last;
}};

struct Composition {{
  char32_t first, second, whole;
}};

inline constexpr CharacterRun kWordRuns[] = {{
{pairs(words)}
}};

inline constexpr CharacterRun kMarkRuns[] = {{
{pairs(marks)}
}};

// In the order of the first character, then of the second.
inline constexpr Composition kCompositions[] = {{
{numbers("{" + ",".join(f"0x{c:X}" for c in row) + "}" for row in compositions(folder, database))}
}};

}}  // namespace weighbridge::tokenizers
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ucd", type=pathlib.Path, default=pathlib.Path("/usr/share/unicode"), help="folder of the database")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--oracle", type=pathlib.Path, help="bert_normalizer_unicode_oracle.json")
    options = parser.parse_args()
    for target, text in ((TARGET, generate(options.ucd, options.oracle)), (CLASSES_TARGET, classes(options.ucd)),
                         (STEPS_TARGET, steps(options.ucd))):
        if not options.check:
            target.write_text(text, encoding="utf-8")
        elif target.read_text(encoding="utf-8") != text:
            sys.exit(f"{target} is not what tools/generate_unicode_tables.py makes")


if __name__ == "__main__":
    main()
